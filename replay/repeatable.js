// Makes what a page asks for the same on every load: scripts like to put the time and random numbers into
// URLs. After Web Page Replay's deterministic.js: a value stays for some calls, so that the order in which
// scripts run matters little, and then moves on, so that loops that wait for another value end.
(function (beginning) {
  "use strict";
  var CALLS_PER_NUMBER = 25;
  var CALLS_PER_TIME = 500;
  var MS_PER_STEP = 50;

  function stepper(callsPerValue, next) {
    var calls = 0;
    var value = next();
    return function () {
      calls += 1;
      if (calls > callsPerValue) {
        calls = 1;
        value = next();
      }
      return value;
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

  Math.random = stepper(CALLS_PER_NUMBER, generator(2019));

  var byte = generator(38);
  Crypto.prototype.getRandomValues = function (array) {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).forEach(function (_, place, bytes) {
      bytes[place] = byte() * 256;
    });
    return array;
  };
  Crypto.prototype.randomUUID = function () {
    return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, function (digit) {
      return (+digit ^ ((byte() * 16) >> (+digit / 4))).toString(16);
    });
  };

  var steps = -1;
  var now = stepper(CALLS_PER_TIME, function () {
    steps += 1;
    return beginning + steps * MS_PER_STEP;
  });
  var RealDate = Date;
  Date = function () {
    var parts = arguments.length ? [null].concat([].slice.call(arguments)) : [null, now()];
    var date = new (Function.prototype.bind.apply(RealDate, parts))();
    return new.target ? Object.setPrototypeOf(date, new.target.prototype) : date.toString();
  };
  Date.prototype = RealDate.prototype;
  Date.prototype.constructor = Date;
  Date.UTC = RealDate.UTC;
  Date.parse = RealDate.parse;
  Date.now = now;

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
