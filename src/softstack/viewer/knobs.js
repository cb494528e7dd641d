// What the page to play with is made of: sliders, and the pile before a step.

const LARGE_UNIT = 110; // pixels for a strength of 1
const subscript = (n) => [...String(n)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");

// A slider with a field for the same number. `onInput` is called while it moves, `onDone` when it rests.
function numberSlider(name, words, id, onInput, onDone) {
  const range = el("input", { type: "range", min: 0, max: 1, step: 0.05, id, "aria-label": words }),
    field = el("input", {
      type: "number",
      min: 0,
      max: 1,
      step: 0.05,
      "aria-label": `${words}, as a number`,
    });
  range.addEventListener("input", () => onInput(+range.value));
  range.addEventListener("change", onDone);
  field.addEventListener("change", () => {
    if (field.value !== "" && Number.isFinite(+field.value)) (onInput(clipped(+field.value)), onDone());
    else onDone();
  });
  const node = el("div", { class: "knob" }, el("label", { for: id }, ...name), range, field);
  const show = (value) => {
    range.value = value;
    range.setAttribute("aria-valuetext", short(value));
    if (document.activeElement !== field || +field.value !== value) field.value = short(value);
  };
  return { node, show };
}

// The pile before a step: what the pop takes away is hatched.
class BeforePile extends Pile {
  mark(taken) {
    this.bracket.style.display = "none";
    for (const [slot, node] of this.cells.nodes) {
      const hatch = node.querySelector("u") ?? node.firstChild.appendChild(el("u"));
      hatch.style.height = `${(taken[slot] ?? 0) * this.unit}px`;
    }
  }
}
