// The gallery: networks by task, and of the one that is shown what to look for, an input that it gets right and one
// that breaks it.

const SHORT_INPUT = 24; // symbols that a button shows

// `choose(k)` shows a network.
class GalleryView {
  constructor(data, choose) {
    this.exhibits = data.gallery;
    this.networks = data.networks;
    this.buttons = this.exhibits.map(({ works, way }, k) =>
      el(
        "button",
        { type: "button", onclick: () => choose(k), class: works ? "works" : "fails", title: way },
        el("span", {}, this.name(k)),
        el("small", {}, works ? "works" : "fails"),
      ),
    );
    const byTask = new Map();
    data.networks.forEach(({ task }, k) => byTask.set(task, [...(byTask.get(task) ?? []), this.buttons[k]]));
    const groups = [...byTask].map(([task, buttons]) =>
      el("div", { class: "shelf" }, el("h2", {}, data.tasks[task].title), el("div", {}, ...buttons)),
    );
    const title = el("h1", {}, "Networks that work, and networks that fail");
    const lead = el(
      "p",
      {},
      "Trained on the tasks of the paper, all running in this page. Choose one, read what to look for, and step through " +
        "an input that it gets right and one that breaks it. Then type your own.",
    );
    this.nav = document.getElementById("gallery");
    this.nav.replaceChildren(el("p", { class: "brand" }, "softstack gallery"), title, lead, ...groups);
    this.section = document.getElementById("exhibit");
    this.nav.hidden = this.section.hidden = false;
    document.body.classList.add("gallery");
  }

  name(k) {
    return [this.networks[k].short, this.exhibits[k].special].filter(Boolean).join(", ");
  }

  // `type(text)` gives the networks an input.
  show(k, type) {
    const { works, way, look, right, wrong } = this.exhibits[k];
    this.buttons.forEach((button, n) => button.setAttribute("aria-current", n === k));
    const input = (kind, words, text) => {
      const symbols = text.split(" "),
        shown =
          symbols.length > SHORT_INPUT
            ? `${symbols.slice(0, 10).join(" ")} … (${symbols.length} symbols)`
            : text;
      return el(
        "button",
        { type: "button", class: kind, onclick: () => type(text) },
        `${words}: `,
        el("code", {}, shown),
      );
    };
    this.section.replaceChildren(
      el(
        "p",
        { class: works ? "works" : "fails" },
        el("b", {}, this.name(k)),
        ` ${way}, ${works ? "works" : "fails"}`,
      ),
      el("p", {}, look),
      el("div", { class: "inputs" }, input("right", "Gets right", right), input("wrong", "Breaks it", wrong)),
    );
  }
}
