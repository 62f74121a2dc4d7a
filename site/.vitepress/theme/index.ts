import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import { data } from './first-server.data.js'
import './diagram.css'
import './first-screen.css'

/** The default theme, with code beside the words of the first screen. */
const theme: Theme = {
  extends: DefaultTheme,
  Layout: () =>
    h(DefaultTheme.Layout, null, {
      'home-hero-image': () => h('div', { class: 'first-code vp-doc', innerHTML: data }),
    }),
}
export default theme
