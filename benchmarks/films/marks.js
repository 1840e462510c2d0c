// The times at which the page made its changes (ms since 1970), as the page noted them.
(() => ({ asked: window.marks }))();
