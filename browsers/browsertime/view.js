// What a page is told about the device it is on.
({
  width: screen.width,
  height: screen.height,
  pixel_ratio: devicePixelRatio,
  touch: navigator.maxTouchPoints > 0,
  platform: navigator.userAgentData?.platform,
});
