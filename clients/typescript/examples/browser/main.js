// @ts-check
/** Lists the sessions of a workspace, follows one live, and appends to it: a whole front end in one file. */

import { connect, Mirror } from "@craftd/client";

const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
/** @type {import("@craftd/client").Client | undefined} */
let client;
/** @type {Mirror | undefined} */
let mirror;
/** @type {string | undefined} */
let chosen;
/** The session whose messages are still being read. @type {string | undefined} */
let wanted;

// The address and the token come in the fragment, which no server sees, or through the form. The token leaves the
// address bar at once and stays with this tab.
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) {
  sessionStorage.setItem("craftd.token", given.get("token") ?? "");
  given.delete("token");
  history.replaceState(null, "", given.size > 0 ? `#${given}` : location.pathname);
}
$("origin").textContent = location.origin;
$("url").value = given.get("url") ?? "";
$("token").value = sessionStorage.getItem("craftd.token") ?? "";
$("door").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  void enter();
});
if ($("url").value && $("token").value) void enter();

async function enter() {
  $("problem").textContent = "";
  showState("connecting");
  try {
    client = await connect({ url: $("url").value, token: $("token").value, name: "browser example" });
  } catch (error) {
    showState("not connected");
    $("problem").textContent = /** @type {Error} */ (error).message;
    return;
  }
  sessionStorage.setItem("craftd.token", $("token").value);
  client.on("state", (state, error) => showState(state, error));
  showState("open");
  $("door").hidden = true;
  $("work").hidden = false;
  for await (const { id, value } of client.pages("workspaces/list"))
    $("workspaces").add(new Option(String(value["name"]), id));
  $("choice").hidden = $("workspaces").length < 2;
  $("workspaces").addEventListener("change", () => void open());
  if ($("workspaces").length > 0) await open();
}

/** Shows the chosen workspace. */
async function open() {
  if (!client) return;
  mirror?.close();
  chosen = wanted = undefined;
  showMessages();
  mirror = await Mirror.open(client, { workspace: $("workspaces").value, nouns: ["sessions"] });
  mirror.on((change) => (change.noun === "messages" ? showMessages() : showSessions()));
  showSessions();
}

/** @param {string} session */
async function choose(session) {
  wanted = session;
  await mirror?.follow(session);
  const before = wanted === session ? chosen : session; // another one was chosen meanwhile
  if (wanted === session) chosen = session;
  if (before !== undefined && before !== chosen) await mirror?.unfollow(before);
  if (wanted !== session) return;
  showSessions();
  showMessages();
  $("name").focus();
}

function showSessions() {
  const records = [...(mirror?.records("sessions").values() ?? [])];
  const at = (/** @type {import("@craftd/client").Mirrored} */ { value }) =>
    Number(value["lastMessageAt"] ?? value["lastUsedAt"] ?? 0);
  records.sort((one, other) => at(other) - at(one));
  sync($("sessions"), records, (row, { id, value }) => {
    const button = row.firstElementChild ?? row.appendChild(document.createElement("button"));
    button.onclick = () => void choose(id);
    button.setAttribute("aria-current", String(id === chosen));
    const [name, preview] =
      button.children.length > 0
        ? button.children
        : [button.appendChild(document.createElement("strong")), button.appendChild(document.createElement("span"))];
    name.textContent = String(value["name"] ?? value["preview"] ?? id);
    preview.textContent = `${value["messageCount"] ?? 0} · ${value["preview"] ?? "no messages"}`;
  });
  const record = chosen === undefined ? undefined : mirror?.records("sessions").get(chosen);
  $("name").textContent = record
    ? String(record.value["name"] ?? chosen)
    : chosen === undefined
      ? "Choose a session"
      : "This session is gone";
  $("composer").hidden = !record;
}

function showMessages() {
  const list = $("messages");
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const messages = (chosen !== undefined && mirror?.messages(chosen)) || [];
  sync(list, messages, (row, { type, content }) => {
    row.dataset["type"] = String(type);
    const who = row.firstElementChild ?? document.createElement("b");
    who.textContent = String(type);
    row.replaceChildren(who, typeof content === "string" ? content : JSON.stringify(content ?? null));
  });
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/**
 * Gives *list* one row for each of *values*; rows that are there are filled anew, so that focus and place stay.
 * @template T
 * @param {HTMLElement} list
 * @param {readonly T[]} values
 * @param {(row: any, value: T) => void} fill
 */
function sync(list, values, fill) {
  while (list.childElementCount > values.length) list.lastElementChild?.remove();
  while (list.childElementCount < values.length) list.append(document.createElement("li"));
  values.forEach((value, at) => fill(list.children[at], value));
}

$("composer").addEventListener("submit", async (/** @type {Event} */ event) => {
  event.preventDefault();
  const content = $("text").value;
  $("text").value = "";
  try {
    // An id of its own, so that the message is stored once even if the daemon is restarted while it is on its way.
    const id = `msg-${Date.now()}-${Math.random().toString(36).slice(2, 8)}`;
    await client?.call("messages/append", {
      workspace: $("workspaces").value,
      session: chosen ?? "",
      messages: [{ id, type: "user", content }],
    });
  } catch (error) {
    $("text").value ||= content;
    showState("open", /** @type {Error} */ (error));
  }
});

/**
 * @param {string} state
 * @param {Error} [error]
 */
function showState(state, error) {
  $("state").dataset["state"] = state;
  const words = /** @type {Record<string, string>} */ ({
    open: "connected",
    lost: "connection lost, trying again",
    closed: "connection closed",
  });
  $("state").textContent = (words[state] ?? state) + (error && state !== "lost" ? `: ${error.message}` : "");
}
