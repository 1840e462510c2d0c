// Run in Firefox itself, with its rights: requests to some hosts go through a proxy of CONNECT-UDP (RFC 9298), which
// resolves their names. Firefox has no preference for this.
const [connectUdp] = arguments;
const [host, port] = connectUdp.proxy;
const hosts = new Set(connectUdp.hosts);
const PATH = "/.well-known/masque/udp/{target_host}/{target_port}/";
const NO_AUTHORIZATION = "";
const NO_ISOLATION = "";
const FAILOVER_S = 10;
// There is no such host (RFC 2606).
const NOWHERE = "https://nowhere.invalid/";

const service = Cc["@mozilla.org/network/protocol-proxy-service;1"].getService(Ci.nsIProtocolProxyService);
const proxy = service.newMASQUEProxyInfo(
  host,
  port,
  PATH,
  NO_AUTHORIZATION,
  NO_ISOLATION,
  Ci.nsIProxyInfo.TRANSPARENT_PROXY_RESOLVES_HOST,
  FAILOVER_S,
  null,
);
const filter = {
  QueryInterface: ChromeUtils.generateQI(["nsIProtocolProxyChannelFilter"]),
  // Other hosts do not exist, and their requests must fail as they do without a proxy. If the proxy refused these
  // hosts, Firefox would ask it again over TCP.
  applyFilter: (channel, otherwise, result) =>
    result.onProxyFilterResult(hosts.has(channel.URI.host) ? proxy : otherwise),
};
service.registerChannelFilter(filter, 0);

// Firefox reads which servers speak HTTP/3 at its first HTTPS request. That is too late for this request, which would
// use TCP. So let Firefox send a first request now, to a host that does not exist.
const { NetUtil } = ChromeUtils.importESModule("resource://gre/modules/NetUtil.sys.mjs");
return new Promise((resolve) => {
  NetUtil.asyncFetch({ uri: NOWHERE, loadUsingSystemPrincipal: true }, (_stream, status) =>
    resolve(ChromeUtils.getXPCOMErrorName(status)),
  );
});
