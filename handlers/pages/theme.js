// Dark or light: by the system, or by the button.

const THEME = "hubledger.theme";

const THEMES = ["", "light", "dark"]; // "": as the system says
const root = document.documentElement;
const chosen = () => localStorage.getItem(THEME) ?? "";

function show() {
  if (chosen()) root.dataset.theme = chosen();
  else delete root.dataset.theme;
}

/** Let a button change the theme, and say which one is chosen. */
export function themeButton(node) {
  const name = () => { node.textContent = `Theme: ${chosen() || "system"}`; };
  node.addEventListener("click", () => {
    localStorage.setItem(THEME, THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length]);
    show();
    name();
  });
  name();
}

show();
