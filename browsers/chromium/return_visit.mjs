// Loads a page with a browser that has visited it before: the browser knows the servers, and may send its first request
// with the handshake. It has no connection to the servers, and nothing in its caches. Browsertime runs this script in
// place of a URL.
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
