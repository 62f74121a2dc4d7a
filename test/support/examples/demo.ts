export { decide, signIn } from '../../../examples/demo/browser.js'
export { openShop, type Shop } from '../../../examples/demo/shop.js'
