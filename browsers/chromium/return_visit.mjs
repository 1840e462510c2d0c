// A page load by a browser that has been there before: it knows the servers, and may send its first request with the
// handshake, but has no connection to them and nothing in its caches. Browsertime runs this in place of a URL.
export default async function (context, commands) {
  const url = process.env.EYELEVEL_RETURN_URL;
  await commands.navigate(url);
  // Neither the driver nor DevTools can close connections; the browser's own page can.
  const driver = context.selenium.driver;
  await driver.get("chrome://net-internals/#sockets");
  await driver.executeScript("chrome.send('flushSocketPools');");
  await commands.cdp.send("Network.clearBrowserCache");
  await commands.cdp.send("Network.clearBrowserCookies");
  await commands.cdp.send("Storage.clearDataForOrigin", { origin: new URL(url).origin, storageTypes: "all" });
  await driver.get("data:,");
  return commands.measure.start(url);
}
