// Loaded into Browsertime's Node before Browsertime itself: where there is a proxy of CONNECT-UDP (RFC 9298), Firefox
// uses it for the hosts of the page, from before that on.
import { readFileSync } from "node:fs";
import { part, replace } from "../browsertime/browsertime.mjs";

const USE_PROXY = readFileSync(new URL("use_proxy.js", import.meta.url), "utf8");

const { Firefox } = await part("firefox/webdriver/firefox.js");

replace(
  Firefox,
  "afterBrowserStart",
  (original) =>
    async function (runner) {
      const connectUdp = this.options.firefox.connectUdp;
      if (connectUdp) await runner.runPrivilegedScript(USE_PROXY, "use_proxy", connectUdp);
      return original.call(this, runner);
    },
);
