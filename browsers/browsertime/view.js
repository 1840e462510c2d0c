// Asks the page at the end of its load how it sees its device, and what its page script did (record/page_script.js).
(() => {
  const { steps, ended, fault } = window[Symbol.for("eyelevel.page_script")] ?? {};
  return {
    device: {
      width: screen.width,
      height: screen.height,
      pixel_ratio: devicePixelRatio,
      touch: navigator.maxTouchPoints > 0,
      platform: navigator.userAgentData?.platform,
    },
    script: steps && { steps, ended, fault },
  };
})();
