import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import consent from '../../../docs/pictures/consent-once.webp'
import './diagram.css'
import './first-screen.css'
import './reference.css'

const alt = 'The page for consent on a phone: who asks to pay how much to whom, Approve and Deny'

/** The default theme, with a picture of the consent page beside the words of the first screen. */
const theme: Theme = {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'home-hero-image': () =>
        h('img', { class: 'first-picture', src: consent, alt, width: 683, height: 1463 }),
    }),
}
export default theme
