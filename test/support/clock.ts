export { type ManualClock, manualClock, startOfTests } from '../../packages/testing/src/clock.js'
