from tests.client.conftest import fake, places

__all__ = ["fake", "places"]
