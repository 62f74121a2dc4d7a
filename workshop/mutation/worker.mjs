// The state of a worker of Vitest, as far as its fake timers read it.
const fakeTimers = {
  loopLimit: 10_000,
  shouldClearNativeTimers: true,
  toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
}
const config = { fakeTimers, expect: {}, snapshotOptions: {} }
globalThis.__vitest_worker__ = {
  config,
  environment: { name: 'node' },
  ctx: {},
  metaEnv: process.env,
}
