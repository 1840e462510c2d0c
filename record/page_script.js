// Runs a site's page script (record/page_script.py). This code is in each document of the page, also in those of
// frames. The page script itself runs in the page's main document, which asks the other documents to wait for an
// element or click on it.
(function (values, script) {
  "use strict";
  const KEY = "eyelevel.page_script";
  // The selector of an element in a shadow tree is that of the tree's host, this text, and that of the element.
  const DEEPER = ">>>";
  const isPage = window === top;
  const since = performance.now.bind(performance);

  const inTree = (tree, selector) => {
    const [host, ...inside] = selector.split(DEEPER);
    const element = tree.querySelector(host);
    if (!inside.length || !element) return element;
    return element.shadowRoot && inTree(element.shadowRoot, inside.join(DEEPER));
  };
  const shown = (selector) => {
    const element = inTree(document, selector);
    return element?.getClientRects().length ? element : null;
  };

  // Calls `look` until it finds something, and then `use` with the result; returns a function that ends the search. It
  // looks when the document has changed, and when a resource has come, since a style sheet may show a hidden element.
  // Changes in shadow trees are not reported, so for their elements it looks before each frame.
  const search = (selector, look, use) => {
    let isOver = false;
    const end = () => {
      isOver = true;
      observer.disconnect();
      removeEventListener("load", attempt, true);
    };
    const attempt = () => {
      const found = isOver ? null : look();
      if (!found) return;
      end();
      use(found);
    };
    const observer = new MutationObserver(attempt);
    const eachFrame = () => {
      attempt();
      if (!isOver) requestAnimationFrame(eachFrame);
    };
    observer.observe(document, { childList: true, subtree: true, attributes: true, characterData: true });
    addEventListener("load", attempt, true);
    if (selector.includes(DEEPER)) eachFrame();
    else attempt();
    return end;
  };

  // Steps that any document of the page may carry out on one of its elements.
  const OF_AN_ELEMENT = {
    wait() {},
    click(element) {
      for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup"]) {
        const Kind = kind.startsWith("pointer") ? PointerEvent : MouseEvent;
        element.dispatchEvent(new Kind(kind, { bubbles: true, cancelable: true, composed: true }));
      }
      element.click();
    },
  };

  // Looks in this document for the element of the page's current step.
  let endSearch = () => {};
  const lookFor = ({ number, name, selector }, done) => {
    endSearch();
    endSearch = search(selector, () => shown(selector), (element) => {
      OF_AN_ELEMENT[name](element);
      done(number);
    });
  };

  const frames = new Set();
  let current = null;
  // Messages between documents. This listener is the first, and hides the messages from the page's own listeners.
  addEventListener("message", (event) => {
    const message = event.data?.[KEY];
    if (!message) return;
    event.stopImmediatePropagation();
    if (!isPage && event.source === top) {
      if (message.step) lookFor(message.step, (number) => top.postMessage({ [KEY]: { number } }, "*"));
      else endSearch();
    } else if (isPage && message.hello) {
      frames.add(event.source);
      if (current) event.source.postMessage({ [KEY]: { step: current.step } }, "*");
    } else if (isPage) current?.done(message.number);
  }, true);
  if (!isPage) {
    top.postMessage({ [KEY]: { hello: true } }, "*");
    return;
  }

  const tellFrames = (message) => frames.forEach((frame) => frame.postMessage({ [KEY]: message }, "*"));
  const anywhere = (name) => (selector) => new Promise((resolve) => {
    const step = { number: state.steps.length, name, selector };
    const done = (number) => {
      if (number !== step.number || !current) return;
      current = null;
      endSearch();
      tellFrames({ over: true });
      resolve();
    };
    current = { step, done };
    tellFrames({ step });
    lookFor(step, done);
  });

  const make = {
    wait: anywhere("wait"),
    click: anywhere("click"),
    fill: (selector, value) => new Promise((resolve) => {
      search(selector, () => shown(selector), (element) => {
        element.focus();
        // Use the setter of the element's class: frameworks replace the element's own property to track the values that
        // they set themselves.
        Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value").set.call(element, value);
        for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true }));
        resolve();
      });
    }),
    gone: (selector) => new Promise((resolve) => {
      search(selector, () => !shown(selector), resolve);
    }),
    loaded: () => new Promise((resolve) => {
      if (document.readyState === "complete") resolve();
      else addEventListener("load", () => setTimeout(resolve), { once: true });
    }),
  };

  // The steps so far, each with its time in ms from navigation start. `over` is called at the end; whoever waits for
  // the end replaces it.
  const state = { steps: [], ended: false, fault: null, over() {} };
  Object.defineProperty(window, Symbol.for(KEY), { value: state });
  const steps = Object.fromEntries(Object.entries(make).map(([name, begin]) => [name, async (...parts) => {
    await begin(...parts);
    state.steps.push([[name, ...parts.slice(0, 1)].join(" "), Math.round(since())]);
  }]));
  const run = () => script({ ...steps, env: values }).then(
    () => { state.ended = true; },
    (error) => { state.fault = String(error); },
  ).then(() => state.over());
  if (document.documentElement) run();
  else document.addEventListener("readystatechange", run, { once: true });
})
