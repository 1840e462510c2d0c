// The times at which the page asked for its changes (ms since 1970).
(() => ({ asked: window.marks }))();
