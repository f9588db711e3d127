// Dark or light: by the system, or by the button.

const THEME = "hubledger.theme";

export function themeButton(node) {
  const root = document.documentElement;
  if (localStorage.getItem(THEME)) root.dataset.theme = localStorage.getItem(THEME);
  node.addEventListener("click", () => {
    root.dataset.theme = getComputedStyle(root).colorScheme === "dark" ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
  });
}
