// Loaded into Browsertime's Node before Browsertime itself: where there is a proxy of CONNECT-UDP (RFC 9298), Firefox
// uses it for the hosts of the page, from before that on.
import { runOnceStarted } from "./privileged_script.mjs";

runOnceStarted("use_proxy", (options) => options.firefox.connectUdp);
