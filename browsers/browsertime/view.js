// The device as a page sees it.
({
  width: screen.width,
  height: screen.height,
  pixel_ratio: devicePixelRatio,
  touch: navigator.maxTouchPoints > 0,
  platform: navigator.userAgentData?.platform,
});
