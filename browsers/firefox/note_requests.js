// Run in Firefox itself, with its rights: appends a line of JSON to a file for each event of a channel. A channel is
// one request, or one step of a redirected request. `browsers.firefox.requests` reads the file. Each line is written at
// once, so that the log is complete even if the browser is killed.
const [path] = arguments;
const file = Cc["@mozilla.org/file/local;1"].createInstance(Ci.nsIFile);
file.initWithPath(path);
const log = Cc["@mozilla.org/network/file-output-stream;1"].createInstance(Ci.nsIFileOutputStream);
const [WRITE, CREATE, APPEND] = [0x02, 0x08, 0x10]; // prio.h
log.init(file, WRITE | CREATE | APPEND, 0o644, 0);

const { TYPE_DOCUMENT, TYPE_WEBSOCKET, TYPE_WEB_MANIFEST, TYPE_INTERNAL_IMAGE_FAVICON } = Ci.nsIContentPolicy;
const { TYPE_BEACON, TYPE_PING, TYPE_CSP_REPORT, TYPE_MEDIA, TYPE_INTERNAL_EVENTSOURCE } = Ci.nsIContentPolicy;
// Kinds of requests that do not count. No page waits for some of them, such as reports to servers. Others may be under
// way as long as the page exists, such as for a video: browsers read only as much of it as they need.
const NOT_AWAITED = [TYPE_BEACON, TYPE_PING, TYPE_CSP_REPORT, TYPE_MEDIA, TYPE_INTERNAL_EVENTSOURCE];
const begun = new Set();

// The value of an attribute, or null if it has none; reading an attribute without a value throws an exception.
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
  // For a request through a proxy that resolves hosts, Firefox reports an address of its own choice, not the server's.
  address: known(() => channel.QueryInterface(Ci.nsIProxiedChannel).proxyInfo)
    ? null
    : known(() => channel.QueryInterface(Ci.nsIHttpChannelInternal).remoteAddress),
});
const end = (channel) => ({
  error: channel.status === Cr.NS_OK ? null : ChromeUtils.getXPCOMErrorName(channel.status),
  code: channel.status,
});
const NOTES = {
  // The target of a redirect has no opening event, only this one, which all requests have.
  "http-on-opening-request": () => ({}),
  "http-on-modify-request": () => ({}),
  "http-on-examine-response": answer,
  "http-on-examine-merged-response": answer,
  // The cache has answered this request, so it was not sent.
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
    // The stream writes each character as one byte, so the text must be encoded first.
    const bytes = unescape(encodeURIComponent(`${JSON.stringify(line)}\n`));
    log.write(bytes, bytes.length);
  },
};
for (const topic of Object.keys(NOTES)) Services.obs.addObserver(observer, topic);
