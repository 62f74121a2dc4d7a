export { type ManualClock, manualClock, startOfTests } from '../../src/testing/clock.js'
