export { seededRandom } from '../../packages/testing/src/random.js'
