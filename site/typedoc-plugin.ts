import {
  type Application,
  type Comment,
  type Context,
  Converter,
  type DeclarationReflection,
  type ParameterReflection,
  type Reflection,
  ReflectionKind,
} from 'typedoc'
import ts from 'typescript'

/**
 * What the reference shows beyond TypeDoc's own: the names of types that stand for a `number` or a `string`, such as
 * `Instant`, and the error of `@throws {InvalidInputError}`, both as links.
 */
export function load({ converter }: Application): void {
  converter.on(Converter.EVENT_CREATE_DECLARATION, keepName)
  converter.on(Converter.EVENT_CREATE_PARAMETER, keepName)
  converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }: Context) => {
    const classes = new Map(
      project.getReflectionsByKind(ReflectionKind.Class).map((each) => [each.name, each]),
    )
    for (const { comment } of Object.values(project.reflections)) {
      if (comment !== undefined) nameErrors(comment, classes)
    }
  })
}

/** The compiler replaces a name for `number` by `number`: takes the name from the declaration. */
function keepName(context: Context, reflection: Reflection): void {
  const own = reflection as DeclarationReflection | ParameterReflection
  if (own.type?.type !== 'intrinsic') return
  const [declaration] = context.getSymbolFromReflection(reflection)?.getDeclarations() ?? []
  const node = declaration && 'type' in declaration ? (declaration.type as ts.Node) : undefined
  if (node === undefined || !ts.isTypeReferenceNode(node) || node.typeArguments) return
  const symbol = context.checker.getSymbolAtLocation(node.typeName)
  if (symbol === undefined) return
  const alias = context.resolveAliasedSymbol(symbol)
  if (!(alias.flags & ts.SymbolFlags.TypeAlias)) return
  own.type = context.createSymbolReference(alias, context, alias.name)
}

function nameErrors({ blockTags }: Comment, classes: ReadonlyMap<string, Reflection>): void {
  for (const tag of blockTags) {
    const name = /^\{(\w+)\}$/.exec(tag.typeAnnotation ?? '')?.[1]
    if (tag.tag !== '@throws' || name === undefined) continue
    const target = classes.get(name)
    tag.content.unshift(
      target === undefined
        ? { kind: 'code', text: `\`${name}\`` }
        : { kind: 'inline-tag', tag: '@link', text: name, target },
      { kind: 'text', text: ' ' },
    )
    delete tag.typeAnnotation
  }
}
