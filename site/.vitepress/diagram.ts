import { renderMermaidSVG } from 'beautiful-mermaid'

/**
 * Renders a Mermaid diagram as an SVG element, at build time, so that it is shown without scripts. Its colours are
 * those of the theme: `theme/diagram.css` has the styles.
 *
 * @throws `Error` if the text is not a diagram.
 */
export function renderDiagram(text: string): string {
  const svg = renderMermaidSVG(text, { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)' })
  // The renderer's own styles load a font from another host, and a template of Vue may contain no style element.
  const unstyled = svg.replace(/<style>[\s\S]*?<\/style>/, '')
  return `<div class="diagram" role="img" aria-label="Sequence diagram" v-pre>${unstyled}</div>\n`
}
