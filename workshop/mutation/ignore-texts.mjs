const errors = /Error$/
const problems = /[Pp]roblem$/

/** Whether a text is what a function returns: `return 'text'`, or one side of `return isFine ? undefined : 'text'`. */
function isReturned({ node, parentPath: { node: parent, parentPath } }) {
  if (parent.type === 'ConditionalExpression' && parent.test !== node) {
    return parentPath.node.type === 'ReturnStatement'
  }
  return parent.type === 'ReturnStatement'
}

/** Ignores texts that only people read: the reason of a refusal, a problem and the message of an error. */
const texts = {
  shouldIgnore(path) {
    if (!path.isStringLiteral() && !path.isTemplateLiteral()) return undefined
    const { parent } = path
    const callee = parent.callee?.name
    if (
      parent.type === 'CallExpression' &&
      callee === 'refused' &&
      parent.arguments[1] === path.node
    ) {
      return 'The reason of a refusal is a text for people.'
    }
    const named = path.getFunctionParent()?.node.id?.name
    if (
      (parent.type === 'ObjectProperty' && parent.key.name === 'problem') ||
      (problems.test(named ?? '') && isReturned(path))
    ) {
      return 'A problem is a text for people.'
    }
    if (
      parent.callee?.type === 'Super' ||
      (parent.type === 'NewExpression' && errors.test(callee ?? ''))
    ) {
      return 'The message of an error is a text for people.'
    }
    return undefined
  },
}

// As declareValuePlugin returns it, which is not installed with the library.
export const strykerPlugins = [{ kind: 'Ignore', name: 'texts', value: texts }]
