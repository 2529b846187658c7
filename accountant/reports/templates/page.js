"use strict";
// Looks numbers up that were computed beforehand; every one is an upper bound, rounded up.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const names = ["noise", "often", "delta"];
  const units = { noise: "times as much noise", often: "times as many releases", delta: "delta" };
  // with more noise epsilon falls, with more releases it grows, with a larger delta it falls
  const cautious = { noise: -1, often: 1, delta: -1 };
  const number = (word) => (word === "∞" ? Infinity : word === "–" ? NaN : Number(word.replaceAll(",", "")));
  const at = [...data.here];
  let grid = data.grids[0];  // of all lines, or of one line alone

  // the grid point at a typed value, or the next one at which epsilon is not smaller
  function place(name, value) {
    const values = data[name];
    if (cautious[name] > 0) return values.findIndex((one) => one >= value);
    return values.findLastIndex((one) => one <= value);
  }

  function downwards(x) {
    if (!(x > 0)) return "0";
    // a difference of decimals of so few digits is one itself, but for round-off
    const digits = Math.max(0, 3 - Math.floor(Math.log10(x) + 1e-9));
    return (Math.floor(x * 10 ** digits + 1e-6) / 10 ** digits).toFixed(digits);
  }

  function times(epsilon) {
    const x = Math.exp(epsilon);
    if (!(x < 1e300)) return "over 1e+300";
    const unit = 10 ** (Math.floor(Math.log10(x)) - 2);
    const up = Math.ceil(x / unit) * unit;
    if (up >= 1e6) return up.toExponential(2);
    return up.toLocaleString("en", { maximumFractionDigits: unit < 0.1 ? 2 : unit < 1 ? 1 : 0,
      minimumFractionDigits: unit < 0.1 ? 2 : unit < 1 ? 1 : 0 });
  }

  // (e^epsilon + delta) / (1 + e^epsilon)
  function guessed(epsilon, delta) {
    const share = 1 - (1 - delta) / (1 + Math.exp(Math.min(epsilon, 700)));
    return Math.min(Math.ceil(1000 * share) / 10, 100).toFixed(1) + " %";
  }

  const axes = data.axes;
  const share = (x, [low, high]) =>
    Math.log(Math.min(Math.max(x, low / 1e3), high * 1e3) / low) / Math.log(high / low);
  const across = (x) => axes.left + (axes.width - axes.left - axes.right) * share(x, axes.x);
  const down = (y) => axes.height - axes.bottom
    - (axes.height - axes.top - axes.bottom) * share(y, axes.y);

  function draw(words) {
    const points = data.delta.map((delta, k) => [delta, number(words[k])])
      .filter(([delta, epsilon]) => delta > 0 && epsilon > 0 && epsilon < Infinity)
      .map(([delta, epsilon]) => [across(delta).toFixed(1), down(epsilon).toFixed(1)]);
    find("moved").setAttribute("points", points.map((one) => one.join()).join(" "));
    find("dots").replaceChildren(...points.map(([x, y]) => {
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      for (const [key, value] of [["class", "dot"], ["r", 3], ["cx", x], ["cy", y]]) {
        dot.setAttribute(key, value);
      }
      return dot;
    }));
    const [delta, epsilon] = [data.delta[at[2]], number(words[at[2]])];
    const seen = delta > 0 && epsilon >= axes.y[0] && epsilon <= axes.y[1];
    find("here").setAttribute("cx", seen ? across(delta) : -20);
    find("here").setAttribute("cy", seen ? down(epsilon) : -20);
  }

  function fill() {
    find("table-delta").textContent = data.words.delta[at[2]];
    find("grid").tHead.querySelectorAll("small").forEach((cell, j) => {
      cell.textContent = grid.releases[j].toLocaleString("en");
    });
    find("grid").tBodies[0].querySelectorAll("tr").forEach((row, i) => {
      row.querySelectorAll("td").forEach((cell, j) => {
        const fits = grid.fits[i][j][at[2]] === "1";
        cell.classList.toggle("fits", fits);
        cell.classList.toggle("chosen", i === at[0] && j === at[1]);
        cell.textContent = grid.epsilon[i][j][at[2]];
        if (!fits) return;
        const mark = document.createElement("span");
        mark.className = "mark";
        mark.setAttribute("role", "img");
        mark.setAttribute("aria-label", "fits");
        mark.textContent = "✓";
        cell.append(mark);
      });
    });
  }

  function show(note) {
    const [i, j, k] = at, words = grid.epsilon[i][j];
    const epsilon = number(words[k]), fits = grid.fits[i][j][k] === "1";
    find("epsilon").textContent = words[k];
    find("rest").textContent = fits ? downwards(data.budget - epsilon) : "nothing";
    find("releases").textContent = grid.releases[j].toLocaleString("en");
    find("factor").textContent = Number.isNaN(epsilon) ? "–" : epsilon < Infinity ? `${times(epsilon)} ×` : "∞";
    find("guess").textContent = Number.isNaN(epsilon) ? "–" : guessed(epsilon, data.delta[k]);
    find("said").textContent = Number.isNaN(epsilon)
      ? "There is no such plan: a mechanism does not take this noise."
      : `Epsilon ${words[k]} at delta ${data.words.delta[k]}: `
        + (fits ? "it fits the budget." : "it does not fit the budget.");
    find("said").className = fits ? "said good" : "said bad";
    const bar = find("bar").lastElementChild;
    bar.setAttribute("width", fits ? (100 * epsilon) / data.budget : 100);
    bar.setAttribute("class", fits ? "taken" : "over");
    find("bar").setAttribute("aria-label", `${words[k]} of ${data.budget} is taken`);
    names.forEach((name, axis) => {
      const word = data.words[name][at[axis]];
      find(name).value = at[axis];
      find(name).setAttribute("aria-valuetext", `${word} ${units[name]}`);
      find(`${name}-typed`).value = word;
    });
    find("note").textContent = note || "";
    draw(words);
    fill();
  }

  names.forEach((name, axis) => {
    find(name).addEventListener("input", (event) => {
      at[axis] = Number(event.target.value);
      show();
    });
    find(`${name}-typed`).addEventListener("change", (event) => {
      const typed = event.target.value.trim(), value = Number(typed);
      const found = typed && value >= 0 ? place(name, value) : -1;
      const words = data.words[name];
      if (found < 0) {
        show(`The grid has nothing on the safe side of ${typed || "nothing"}: `
          + `it goes from ${words[0]} to ${words[words.length - 1]}.`);
        return;
      }
      at[axis] = found;
      show(data[name][found] === value ? ""
        : `${typed} is no grid point: shown for ${words[found]}, where epsilon is not smaller.`);
    });
  });
  if (find("turned")) find("turned").addEventListener("change", (event) => {
    grid = data.grids[Number(event.target.value)];
    show();
  });
  find("back").addEventListener("click", () => {
    at.splice(0, 3, ...data.here);
    grid = data.grids[0];
    if (find("turned")) find("turned").value = "0";
    show();
  });
  find("still").remove();
  find("try").hidden = false;
  show();
})();
