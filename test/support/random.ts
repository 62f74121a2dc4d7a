export { seededRandom } from '../../src/testing/random.js'
