// Makes a page send the same requests on every load: scripts often put the time and random numbers into URLs. Web Page
// Replay's deterministic.js does the same. But here each script has its own clock, and each place in a script has its
// own random numbers, so that it does not matter in which order scripts happen to run.
(function repeatable(beginning) {
  "use strict";
  var CALLS_PER_TIME = 500;
  var MS_PER_STEP = 50;
  // Pages see a navigation that began this long before `beginning`, the first time that their clocks show.
  var NAVIGATION_MS = 1000;
  var DAY_MS = 86400000;
  // Timers with a shorter delay than this move something visible; those with a longer delay wait for something.
  var ANIMATION_MS = 50;
  var DONE = Symbol.for("eyelevel.repeatable");
  var RealDate = Date;
  var navigationStart = beginning - NAVIGATION_MS;

  // The address of the page's script that called a function replaced here; `depth` of our own functions are in between.
  // It is "" if no script of the page called: the scripts of tools that measure a load have no address. (Functions of
  // the engine have none either, and are skipped.)
  function caller(depth) {
    var frames = String(new Error().stack).split("\n");
    for (var place = 2 + depth; place < frames.length; place += 1) {
      var address = /(https?:[^\s)]+?)(:\d+)+\)?$/.exec(frames[place]);
      if (address) return address[1];
    }
    return "";
  }

  // The place of the call: the calling function, and the function that called that one. Both are needed to distinguish
  // the uses of a script's own random(). The address of a script from a blob is left out, since it differs in each
  // load.
  function callers(depth) {
    return String(new Error().stack).split("\n").slice(2 + depth, 4 + depth).join().replace(/blob:[^\s)]*?:(?=\d)/g, "");
  }

  // A function that returns a value for its caller, which `at` names. `make` makes the value on the first call.
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

  // The random numbers for one caller, seeded by its name. If two callers drew the same numbers, their identifiers
  // would clash.
  function generatorOf(who) {
    var seed = 2019;
    for (var place = 0; place < who.length; place += 1) seed = (Math.imul(seed, 31) + who.charCodeAt(place)) | 0;
    return generator(seed);
  }

  // How long the current animation has lasted, in ms; 0 outside of an animation's steps.
  var animated = 0;

  // The time of this clock stands still for some calls and then advances, so that loops that wait for a later time end.
  // Between the steps of an animation it advances in real time: otherwise animations would not end, or look different.
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

  // Wraps `callback`: each of its calls is a step of the current animation, or of a new one if there is none.
  function stepping(callback) {
    var began = reallyNow() - animated;
    return function () {
      animated = reallyNow() - began;
      try {
        return callback.apply(this, arguments);
      } finally {
        // Reset this only after the code that awaits this step has run, since that code belongs to the step, too.
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

  // The browser's own clock shows the real time. By this clock, a cookie that expires a year after `beginning` may have
  // expired already.
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

  // Scripts of pages get `told(value)` in place of the true value. Tools that measure this load get the true value.
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

  // Some scripts report to their servers how fast the page was. They get the same times on every load. Two kinds of
  // times are not changed: the entries of Performance Timeline, since they are measured, and performance.now(), since
  // animations need it.
  function replaceTimes(realm) {
    forPages(realm.Performance.prototype, "timeOrigin", function () { return navigationStart; });
    if (!realm.document) return;
    var timing = realm.PerformanceTiming.prototype;
    var moments = Object.keys(timing).filter(function (name) { return name !== "toJSON"; });
    // A moment that has not come remains 0, and the moments keep their order.
    function when(moment, value) {
      return value && navigationStart + 10 * moments.indexOf(moment);
    }
    moments.forEach(function (moment) { forPages(timing, moment, when.bind(null, moment)); });
    forPages(timing, "toJSON", function (values) {
      return Object.fromEntries(moments.map(function (moment) { return [moment, when(moment, values[moment])]; }));
    });
    // If the time of a document's last modification is unknown, browsers return the current time.
    forPages(realm.Document.prototype, "lastModified", function (text) {
      if (RealDate.now() - RealDate.parse(text) > DAY_MS) return text;
      var date = new RealDate(beginning);
      var day = [date.getMonth() + 1, date.getDate(), date.getFullYear()];
      var time = [date.getHours(), date.getMinutes(), date.getSeconds()];
      var two = function (number) { return String(number).padStart(2, "0"); };
      return day.map(two).join("/") + " " + time.map(two).join(":");
    });
  }

  // The browser's estimates of the network differ from load to load.
  function replaceGuesses(realm) {
    if (!realm.NetworkInformation) return;
    var guesses = { downlink: 10, effectiveType: "4g", rtt: 50, saveData: false };
    Object.keys(guesses).forEach(function (name) {
      forPages(realm.NetworkInformation.prototype, name, function () { return guesses[name]; });
    });
  }

  // A frame that has no document of its own, so that the page writes into it, has its own copies of all these
  // functions.
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
            // The frame is of another origin; its own document brings this script.
          }
          return real.call(this);
        },
      });
    });
  }

  // If a worker's script is fetched, it already begins with this script (`replay.repeatable`). If the page makes it
  // itself, as a blob or as a data URL, this script is put in front here.
  var source = "(" + repeatable + ")(" + beginning + ");\n";
  var blobs = Object.create(null);
  var made = Object.create(null);

  function withScript(realm, createAddress, address) {
    if (address in blobs) {
      var blob = blobs[address];
      // A blob always gets the same new address, since a shared worker is identified by its address.
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
          // An object of Trusted Types must not be replaced by a string, since the page's policy may accept only the
          // object.
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
    // Tools that measure a load read its real time origin here: in Firefox, their scripts have the page's address.
    Object.defineProperty(realm, DONE, { value: realm.performance.timeOrigin });
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
