import DefaultTheme from 'vitepress/theme'
import './diagram.css'

export default DefaultTheme
