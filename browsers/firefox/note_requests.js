// Run in Firefox itself, with its rights: appends a line of JSON to a file for each thing that happens to a channel,
// which is one request, or one hop of a redirected one. `browsers.firefox.requests` reads it. Every line is written at
// once, so that the log is whole when the browser is killed.
const [path] = arguments;
const file = Cc["@mozilla.org/file/local;1"].createInstance(Ci.nsIFile);
file.initWithPath(path);
const log = Cc["@mozilla.org/network/file-output-stream;1"].createInstance(Ci.nsIFileOutputStream);
const [WRITE, CREATE, APPEND] = [0x02, 0x08, 0x10]; // prio.h
log.init(file, WRITE | CREATE | APPEND, 0o644, 0);

const { TYPE_DOCUMENT, TYPE_WEBSOCKET, TYPE_WEB_MANIFEST, TYPE_INTERNAL_IMAGE_FAVICON } = Ci.nsIContentPolicy;
const { TYPE_BEACON, TYPE_PING, TYPE_CSP_REPORT, TYPE_MEDIA, TYPE_INTERNAL_EVENTSOURCE } = Ci.nsIContentPolicy;
// Requests that no page waits for, reports to servers, and requests that may be under way for as long as the page is
// there: browsers take no more of a video than they need.
const NOT_AWAITED = [TYPE_BEACON, TYPE_PING, TYPE_CSP_REPORT, TYPE_MEDIA, TYPE_INTERNAL_EVENTSOURCE];
const begun = new Set();

// The value of an attribute, or null while it has none, which it says by an exception.
const known = (attribute) => {
  try {
    return attribute() || null;
  } catch {
    return null;
  }
};

const begin = (channel) => {
  const { loadInfo } = channel;
  const main_frame = loadInfo.externalContentPolicyType === TYPE_DOCUMENT;
  const purposes = [loadInfo.internalContentPolicyType, loadInfo.externalContentPolicyType];
  const for_browser = [TYPE_INTERNAL_IMAGE_FAVICON, TYPE_WEB_MANIFEST].some((type) => purposes.includes(type));
  return {
    url: channel.URI.spec,
    method: channel.requestMethod,
    main_frame,
    web_socket: loadInfo.externalContentPolicyType === TYPE_WEBSOCKET,
    awaited: !NOT_AWAITED.some((type) => purposes.includes(type)),
    by_browser: for_browser || (!main_frame && loadInfo.triggeringPrincipal.isSystemPrincipal),
    initiator: known(() => loadInfo.triggeringPrincipal.originNoSuffix),
    redirected: loadInfo.redirectChainIncludingInternalRedirects.length > 0,
  };
};
const answer = (channel) => ({
  status: channel.responseStatus,
  protocol: known(() => channel.QueryInterface(Ci.nsIHttpChannelInternal).protocolVersion),
  // For a request through a proxy that resolves hosts, Firefox gives an address of its own.
  address: known(() => channel.QueryInterface(Ci.nsIProxiedChannel).proxyInfo)
    ? null
    : known(() => channel.QueryInterface(Ci.nsIHttpChannelInternal).remoteAddress),
});
const end = (channel) => ({
  error: channel.status === Cr.NS_OK ? null : ChromeUtils.getXPCOMErrorName(channel.status),
  code: channel.status,
});
const NOTES = {
  // The target of a redirect is not opened, but made ready like all others.
  "http-on-opening-request": () => ({}),
  "http-on-modify-request": () => ({}),
  "http-on-examine-response": answer,
  "http-on-examine-merged-response": answer,
  // A request that the cache answers was not sent.
  "http-on-examine-cached-response": (channel) => ({ status: channel.responseStatus }),
  "http-on-failed-opening-request": end,
  "http-on-stop-request": end,
};

const observer = {
  observe(subject, topic) {
    const channel = subject.QueryInterface(Ci.nsIHttpChannel);
    const { channelId } = channel.QueryInterface(Ci.nsIIdentChannel);
    const beginning = begun.has(channelId) ? {} : begin(channel);
    begun.add(channelId);
    const line = { at_ms: Date.now(), channel: channelId, event: topic, ...beginning, ...NOTES[topic](channel) };
    // A stream takes bytes, one for each character.
    const bytes = unescape(encodeURIComponent(`${JSON.stringify(line)}\n`));
    log.write(bytes, bytes.length);
  },
};
for (const topic of Object.keys(NOTES)) Services.obs.addObserver(observer, topic);
