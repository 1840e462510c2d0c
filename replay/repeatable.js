// Makes what a page asks for the same on every load: scripts like to put the time and random numbers into
// URLs. As in Web Page Replay's deterministic.js, but each script has numbers and a clock of its own, so that
// the order in which scripts happen to run does not matter.
(function (beginning) {
  "use strict";
  var CALLS_PER_TIME = 500;
  var MS_PER_STEP = 50;
  var RealDate = Date;

  // The script that called Math.random or the like, or "" when the engine does not tell. On the stack stand
  // the error's message, this function, that of `perScript`, and the one that the script called.
  function caller() {
    var frame = String(new Error().stack).split("\n")[4] || "";
    var place = /(https?:[^\s)]+?)(:\d+)+\)?$/.exec(frame);
    return place ? place[1] : "";
  }

  // A function that finds what `make` made for the script at work.
  function perScript(make) {
    var made = Object.create(null);
    return function () {
      var script = caller();
      if (!(script in made)) made[script] = make(script);
      return made[script];
    };
  }

  // Mulberry32: small, fast, and good enough for identifiers.
  function generator(state) {
    return function () {
      state = (state + 0x6d2b79f5) | 0;
      var mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }

  // Two scripts must not draw the same numbers, or their identifiers would clash.
  function generatorOf(script) {
    var seed = 2019;
    for (var place = 0; place < script.length; place += 1) seed = Math.imul(seed, 31) + script.charCodeAt(place);
    return generator(seed);
  }

  // Time stands still for some calls and then moves on, so that loops that wait for it end.
  function clock() {
    var calls = 0;
    return function () {
      calls += 1;
      return beginning + Math.floor(calls / CALLS_PER_TIME) * MS_PER_STEP;
    };
  }

  var numbers = perScript(generatorOf);
  var bytesOf = perScript(generatorOf);
  var clocks = perScript(clock);

  Math.random = function () { return numbers()(); };

  Crypto.prototype.getRandomValues = function (array) {
    var bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    var next = bytesOf();
    for (var place = 0; place < bytes.length; place += 1) bytes[place] = next() * 256;
    return array;
  };
  Crypto.prototype.randomUUID = function () {
    var next = bytesOf();
    return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, function (digit) {
      return (+digit ^ ((next() * 16) >> (+digit / 4))).toString(16);
    });
  };

  Date = function () {
    var parts = arguments.length ? [null].concat([].slice.call(arguments)) : [null, clocks()()];
    var date = new (Function.prototype.bind.apply(RealDate, parts))();
    return new.target ? Object.setPrototypeOf(date, new.target.prototype) : date.toString();
  };
  Date.prototype = RealDate.prototype;
  Date.prototype.constructor = Date;
  Date.UTC = RealDate.UTC;
  Date.parse = RealDate.parse;
  Date.now = function () { return clocks()(); };

  // The browser's own clock goes on, and would take a cookie that ends a year after `beginning` for expired.
  var cookie = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
  function inRealTime(_, name, text) {
    var end = RealDate.parse(text);
    return name + (isNaN(end) ? text : new RealDate(RealDate.now() + end - beginning).toUTCString());
  }
  Object.defineProperty(Document.prototype, "cookie", {
    configurable: true,
    enumerable: true,
    get: cookie.get,
    set: function (text) {
      cookie.set.call(this, String(text).replace(/(;\s*expires\s*=\s*)([^;]+)/i, inRealTime));
    },
  });

  Object.defineProperty(Performance.prototype, "timeOrigin", { get: function () { return beginning; } });
})
