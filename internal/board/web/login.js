// The log-in of a board beside a cluster. The page hands a name and a password over, and never sees them again.

import { html, nothing, render } from "./vendor/lit-html.js";
import { visible } from "./text.js";

// logIn shows the form in an element until the brokers have accepted a name and a password. why says why it is shown.
export function logIn(root, why) {
  return new Promise((done) => {
    let said = why;
    let busy = false;
    const send = async (event) => {
      event.preventDefault();
      if (busy) return;
      const form = new FormData(event.target);
      busy = true;
      draw();
      try {
        const reply = await fetch("/login", { method: "POST", headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ name: form.get("name"), password: form.get("password") }) });
        if (reply.ok) {
          root.replaceWith(root.cloneNode(false)); // lit-html keeps what it has drawn at the element
          done();
          return;
        }
        said = `${reply.status} ${await reply.text()}`;
      } catch (err) {
        said = `no reply: ${err?.message ?? err}`;
      }
      busy = false;
      draw();
    };
    const draw = () => render(html`<header class="stale"><h1>Holdfast</h1></header><main>
      <form id="login" class="session" @submit=${send}><section aria-label="Log in"><h2>Log in</h2>
        <label class="own">name <input type="text" name="name" autocomplete="username" required></label>
        <label class="own">password <input type="password" name="password" autocomplete="current-password"
          required></label>
        <p class="buttons"><button class="main" ?disabled=${busy}>Log in</button></p>
        ${said ? html`<p class="verdict refused" role="alert">${visible(said)}</p>` : nothing}
      </section></form></main>`, root);
    root.replaceChildren(); // lit-html keeps what it did not draw
    draw();
  });
}

// logOut makes the browser forget the login. It returns why that failed.
export async function logOut() {
  try {
    const reply = await fetch("/logout",
      { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    if (!reply.ok) return `${reply.status} ${await reply.text()}`;
  } catch (err) {
    return `no reply: ${err?.message ?? err}`;
  }
  location.reload();
  return "";
}
