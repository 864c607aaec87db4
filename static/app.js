// The pages work without this file. It counts time left down (text only, rows
// never move), copies, and says how many new rows there are.
(() => {
  const page = document.documentElement;
  const ahead = Date.parse(page.dataset.now) - Date.now() || 0; // server's clock minus ours

  const pad = (n) => String(n).padStart(2, "0");
  const tick = () => {
    for (const t of document.querySelectorAll("time[data-left]")) {
      const s = Math.max(0, Math.floor((Date.parse(t.dateTime) - Date.now() - ahead) / 1000));
      if (s >= 3600) continue; // written by the server in hours
      t.classList.toggle("soon", s < 180);
      t.textContent = pad(Math.floor(s / 60)) + ":" + pad(s % 60);
    }
  };
  tick();
  setInterval(tick, 1000);

  // What was meant for the proposal before must not decide this one. The sheet holds
  // Approve back for a moment. Here a click, or a key that would press it, begins
  // that moment anew.
  const presses = (e) => e.key === "Enter" || e.key === " ";
  const held = document.querySelector("form.decide.wait");
  if (held?.querySelector(".go")) {
    const guards = held.getAnimations({ subtree: true });
    const anew = () => guards.forEach((g) => { if (g.playState !== "finished") g.currentTime = 0; });
    addEventListener("pointerdown", anew, true);
    addEventListener("keydown", (e) => { if (presses(e)) anew(); }, true);
  }
  // A key that is held down decides once at most.
  document.addEventListener("keydown", (e) => {
    if (e.repeat && presses(e) && e.target.closest?.("form.decide button")) e.preventDefault();
  });

  for (const b of document.querySelectorAll("button.js")) b.hidden = false;
  document.addEventListener("click", async (e) => {
    const b = e.target.closest("[data-copy], [data-copy-page]");
    if (b) {
      const from = b.dataset.copy && document.getElementById(b.dataset.copy);
      try {
        await navigator.clipboard.writeText(from ? from.innerText.trim() : location.href.split("#")[0]);
        const label = b.querySelector("span");
        label.dataset.name ??= label.textContent; // a second click finds "Copied" there
        label.textContent = b.dataset.done;
        setTimeout(() => { label.textContent = label.dataset.name; }, 1600);
      } catch { /* no permission: the text stays selectable */ }
    }
    const menu = document.querySelector("details.menu[open]");
    if (menu && !menu.contains(e.target)) menu.open = false;
  });
  document.addEventListener("keydown", (e) => {
    const menu = document.querySelector("details.menu[open]");
    if (e.key === "Escape" && menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  const fresh = document.querySelector("[data-stream]");
  if (fresh && "EventSource" in window) {
    const link = fresh.querySelector("a");
    let source;
    const open = () => {
      source = new EventSource(fresh.dataset.stream);
      source.addEventListener("now", (e) => {
        const now = document.querySelector("[data-now-of]");
        if (now) now.textContent = e.data;
      });
      source.addEventListener("new", (e) => {
        const n = Number(e.data);
        if (!link) return; // the page only waits for what becomes of a decision
        link.hidden = !(n > 0);
        link.textContent = n === 1 ? fresh.dataset.one : fresh.dataset.many.replace("{n}", String(n));
      });
    };
    open();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  }
})();
