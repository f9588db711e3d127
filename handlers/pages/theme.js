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
  const which = document.createElement("span"); // not shown on a phone
  const name = () => { which.textContent = `: ${chosen() || "system"}`; };
  node.replaceChildren("Theme", which);
  node.addEventListener("click", () => {
    localStorage.setItem(THEME, THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length]);
    show();
    name();
  });
  name();
}

show();
