// Desktop notices of prompts that come while the page is hidden.

import { linkOf } from "./doc.js";
import { name, visible } from "./text.js";

const noticesMax = 3; // notices of one change; more are counted in one

// fresh returns the rows that wait and are not known yet, and the set of all that wait now. Without a known set, as at
// the start, nothing is fresh: what has long waited is no news.
export function fresh(known, rows) {
  const waiting = [...rows].filter((row) => row.waits);
  return {
    come: known ? waiting.filter((row) => !known.has(row.key)) : [],
    known: new Set(waiting.map((row) => row.key)),
  };
}

// Notices shows them. A prompt has one notice however many tabs are open: its key is the tag.
export class Notices {
  constructor(app) {
    this.app = app;
    this.refused = false; // the browser has refused to show one
  }

  // state returns granted, denied, default, refused, or "" where the browser has no notices.
  state() {
    return this.refused ? "refused" : globalThis.Notification?.permission ?? "";
  }

  // ask asks the browser for the permission, and shows a first notice.
  async ask() {
    await Notification.requestPermission();
    if (this.state() === "granted") this.show("Holdfast shows here what waits for you", "", "holdfast-on", "#/");
    this.app.draw();
  }

  // update is called at each change of the rows. hidden says that the page is not on the screen.
  update(rows, hidden) {
    const { come, known } = fresh(this.known, rows);
    this.known = known;
    if (!hidden || this.state() !== "granted" || come.length === 0) return;
    for (const row of come.slice(0, noticesMax)) {
      this.show(row.title, `${visible(row.kind)} of ${name(row.group)}`, row.key, linkOf(row));
    }
    if (come.length > noticesMax) this.show(`${come.length - noticesMax} more wait for you`, "", "holdfast-more", "#/");
  }

  // show shows one notice. Browsers of phones throw here, although they have given the permission.
  show(title, body, tag, link) {
    let notice;
    try {
      notice = new Notification(title, { body, tag, icon: "/icon.svg" });
    } catch {
      this.refused = true;
      return;
    }
    notice.onclick = () => {
      window.focus();
      location.hash = link;
      notice.close();
    };
  }
}
