// Makes what a page asks for the same on every load: scripts like to put the time and random numbers into
// URLs. As in Web Page Replay's deterministic.js, but each script has a clock of its own, and each place in a script
// numbers of its own, so that the order in which they happen to run does not matter.
(function repeatable(beginning) {
  "use strict";
  var CALLS_PER_TIME = 500;
  var MS_PER_STEP = 50;
  // How long before pages began to tell the time their navigation is said to have begun.
  var NAVIGATION_MS = 1000;
  var DAY_MS = 86400000;
  // Timers that are faster than this move something that a person sees; slower ones wait for something.
  var ANIMATION_MS = 50;
  var DONE = Symbol.for("eyelevel.repeatable");
  var RealDate = Date;
  var navigationStart = beginning - NAVIGATION_MS;

  // The script of the page that called what is replaced here, `depth` functions of ours in between; "" when it was
  // none: the tools that measure a load bring scripts without an address. Functions of the engine have none either.
  function caller(depth) {
    var frames = String(new Error().stack).split("\n");
    for (var place = 2 + depth; place < frames.length; place += 1) {
      var address = /(https?:[^\s)]+?)(:\d+)+\)?$/.exec(frames[place]);
      if (address) return address[1];
    }
    return "";
  }

  // Where in it that was: the function that called and the one that called that, which tells a script's uses of its
  // own random() apart. A script from a blob has an address that no one can repeat.
  function callers(depth) {
    return String(new Error().stack).split("\n").slice(2 + depth, 4 + depth).join().replace(/blob:[^\s)]*?:(?=\d)/g, "");
  }

  // A function that finds what `make` made for whom `at` names.
  function per(at, make) {
    var made = Object.create(null);
    return function () {
      var who = at(2);
      if (!(who in made)) made[who] = make(who);
      return made[who];
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

  // No two must draw the same numbers, or their identifiers would clash.
  function generatorOf(who) {
    var seed = 2019;
    for (var place = 0; place < who.length; place += 1) seed = (Math.imul(seed, 31) + who.charCodeAt(place)) | 0;
    return generator(seed);
  }

  // How long the animation of which this is a step has been going on, in ms; 0 outside of animations.
  var animated = 0;

  // Time stands still for some calls and then moves on, so that loops that wait for it end; and it really goes on from
  // step to step of an animation, which would not end either, or look as it does not.
  function clock() {
    var calls = 0;
    return function () {
      calls += 1;
      return beginning + Math.floor(calls / CALLS_PER_TIME) * MS_PER_STEP + Math.floor(animated);
    };
  }

  var numbers = per(callers, generatorOf);
  var bytesOf = per(callers, generatorOf);
  var clocks = per(caller, clock);

  function replaceRandomNumbers(realm) {
    realm.Math.random = function () { return numbers()(); };

    realm.Crypto.prototype.getRandomValues = function (array) {
      var bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      var next = bytesOf();
      for (var place = 0; place < bytes.length; place += 1) bytes[place] = next() * 256;
      return array;
    };
    realm.Crypto.prototype.randomUUID = function () {
      var next = bytesOf();
      return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, function (digit) {
        return (+digit ^ ((next() * 16) >> (+digit / 4))).toString(16);
      });
    };
  }

  function replaceDate(realm) {
    var Real = realm.Date;
    var Told = function () {
      var parts = arguments.length ? [null].concat([].slice.call(arguments)) : [null, clocks()()];
      var date = new (Function.prototype.bind.apply(Real, parts))();
      return new.target ? Object.setPrototypeOf(date, new.target.prototype) : date.toString();
    };
    Told.prototype = Real.prototype;
    Told.prototype.constructor = Told;
    Told.UTC = Real.UTC;
    Told.parse = Real.parse;
    Told.now = function () { return clocks()(); };
    realm.Date = Told;
  }

  var afterwards = queueMicrotask.bind(self);

  var reallyNow = performance.now.bind(performance);

  // `callback`, each call of which is a step of an animation that goes on from the one at work.
  function stepping(callback) {
    var began = reallyNow() - animated;
    return function () {
      animated = reallyNow() - began;
      try {
        return callback.apply(this, arguments);
      } finally {
        // After those who await this step, who are of it too.
        afterwards(function () { animated = 0; });
      }
    };
  }

  function followAnimations(realm) {
    ["setTimeout", "setInterval"].forEach(function (name) {
      var real = realm[name];
      realm[name] = function (callback, delay) {
        var parts = [].slice.call(arguments);
        if (typeof callback === "function" && delay > 0 && delay < ANIMATION_MS) parts[0] = stepping(callback);
        return real.apply(this === undefined ? realm : this, parts);
      };
    });
    var realFrame = realm.requestAnimationFrame;
    if (realFrame) realm.requestAnimationFrame = function (callback) {
      var step = typeof callback === "function" ? stepping(callback) : callback;
      return realFrame.call(this === undefined ? realm : this, step);
    };
  }

  // The browser's own clock goes on, and would take a cookie that ends a year after `beginning` for expired.
  function inRealTime(_, name, text) {
    var end = RealDate.parse(text);
    return name + (isNaN(end) ? text : new RealDate(RealDate.now() + end - beginning).toUTCString());
  }

  function keepCookies(realm) {
    var cookie = Object.getOwnPropertyDescriptor(realm.Document.prototype, "cookie");
    Object.defineProperty(realm.Document.prototype, "cookie", {
      configurable: true,
      enumerable: true,
      get: cookie.get,
      set: function (text) {
        cookie.set.call(this, String(text).replace(/(;\s*expires\s*=\s*)([^;]+)/i, inRealTime));
      },
    });
  }

  // Scripts of pages are told what `told` makes of the true value. Tools that measure this load get the value itself.
  function forPages(prototype, name, told) {
    var real = Object.getOwnPropertyDescriptor(prototype, name);
    var tell = function () {
      var value = (real.get || real.value).call(this);
      return caller(1) ? told(value) : value;
    };
    Object.defineProperty(prototype, name, {
      configurable: true,
      enumerable: true,
      ...(real.get ? { get: tell } : { value: tell, writable: true }),
    });
  }

  // Scripts that tell their servers how fast the page was get the same times on every load. The entries of
  // Performance Timeline and performance.now() are left alone: the first are what is measured, and animations
  // need the second.
  function replaceTimes(realm) {
    forPages(realm.Performance.prototype, "timeOrigin", function () { return navigationStart; });
    if (!realm.document) return;
    var timing = realm.PerformanceTiming.prototype;
    var moments = Object.keys(timing).filter(function (name) { return name !== "toJSON"; });
    // Whether a moment has come stays true (0 is "not yet"), and so does their order.
    function when(moment, value) {
      return value && navigationStart + 10 * moments.indexOf(moment);
    }
    moments.forEach(function (moment) { forPages(timing, moment, when.bind(null, moment)); });
    forPages(timing, "toJSON", function (values) {
      return Object.fromEntries(moments.map(function (moment) { return [moment, when(moment, values[moment])]; }));
    });
    // A document that does not tell when it was modified was so just now.
    forPages(realm.Document.prototype, "lastModified", function (text) {
      if (RealDate.now() - RealDate.parse(text) > DAY_MS) return text;
      var date = new RealDate(beginning);
      var day = [date.getMonth() + 1, date.getDate(), date.getFullYear()];
      var time = [date.getHours(), date.getMinutes(), date.getSeconds()];
      var two = function (number) { return String(number).padStart(2, "0"); };
      return day.map(two).join("/") + " " + time.map(two).join(":");
    });
  }

  // The browser's belief about the network is a guess that changes from load to load.
  function replaceGuesses(realm) {
    if (!realm.NetworkInformation) return;
    var guesses = { downlink: 10, effectiveType: "4g", rtt: 50, saveData: false };
    Object.keys(guesses).forEach(function (name) {
      forPages(realm.NetworkInformation.prototype, name, function () { return guesses[name]; });
    });
  }

  // A frame without a document of its own, into which the page is about to write, is a realm of its own.
  function followIntoFrames(realm) {
    var prototype = realm.HTMLIFrameElement.prototype;
    var frameOf = Object.getOwnPropertyDescriptor(prototype, "contentWindow").get;
    ["contentWindow", "contentDocument"].forEach(function (name) {
      var real = Object.getOwnPropertyDescriptor(prototype, name).get;
      Object.defineProperty(prototype, name, {
        configurable: true,
        enumerable: true,
        get: function () {
          var frame = frameOf.call(this);
          try {
            if (frame && frame.location.protocol === "about:") make(frame);
          } catch (error) {
            // The frame is of another origin: it has the script from its own document.
          }
          return real.call(this);
        },
      });
    });
  }

  // Scripts of workers that have an address begin with this script (`replay.repeatable`). It is put before those that a
  // page makes itself, as a blob or in the address.
  var source = "(" + repeatable + ")(" + beginning + ");\n";
  var blobs = Object.create(null);
  var made = Object.create(null);

  function withScript(realm, createAddress, address) {
    if (address in blobs) {
      var blob = blobs[address];
      // A shared worker is known by its address.
      if (!(address in made)) made[address] = createAddress(new realm.Blob([source, blob], { type: blob.type }));
      return made[address];
    }
    var data = /^(data:[^,]*?)(;\s*base64)?,(.*)$/is.exec(address);
    if (!data) return address;
    if (!data[2]) return data[1] + "," + encodeURIComponent(source) + data[3];
    return data[1] + ";base64," + btoa(source + atob(decodeURIComponent(data[3])));
  }

  function followIntoWorkers(realm) {
    var createAddress = realm.URL.createObjectURL;
    var revokeAddress = realm.URL.revokeObjectURL;
    if (!createAddress) return; // a service worker makes no others
    realm.URL.createObjectURL = function (object) {
      var address = createAddress(object);
      if (object instanceof realm.Blob) blobs[address] = object;
      return address;
    };
    realm.URL.revokeObjectURL = function (address) {
      delete blobs[address];
      return revokeAddress(address);
    };
    ["Worker", "SharedWorker"].forEach(function (name) {
      var Real = realm[name];
      if (!Real) return;
      realm[name] = new Proxy(Real, {
        construct: function (_, parts, target) {
          // Whoever trusts an address by a policy (Trusted Types) has an object for it, which must stay what it is.
          if (typeof parts[0] === "string" || parts[0] instanceof realm.URL) {
            parts[0] = withScript(realm, createAddress, String(parts[0]));
          }
          return Reflect.construct(Real, parts, target);
        },
      });
    });
  }

  function make(realm) {
    if (realm[DONE]) return;
    Object.defineProperty(realm, DONE, { value: true });
    replaceRandomNumbers(realm);
    replaceDate(realm);
    followAnimations(realm);
    replaceTimes(realm);
    replaceGuesses(realm);
    followIntoWorkers(realm);
    if (!realm.document) return; // a worker
    keepCookies(realm);
    followIntoFrames(realm);
  }

  make(self);
})
