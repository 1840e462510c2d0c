// Loaded into Browsertime's Node before Browsertime itself: if there is a proxy of CONNECT-UDP (RFC 9298), Firefox uses
// it for the hosts of the page. This begins before the page.
import { runOnceStarted } from "./privileged_script.mjs";

runOnceStarted("use_proxy", (options) => options.firefox.connectUdp);
