// Starts `irscope serve lsp` for Python and MLIR files, and ends it with the window.
const {workspace} = require('vscode')
const {LanguageClient} = require('vscode-languageclient/node')

let client

async function activate() {
  const settings = workspace.getConfiguration('irscope')
  client = new LanguageClient(
    'irscope',
    'irscope',
    {command: settings.get('command'), args: ['serve', 'lsp']},
    {
      documentSelector: [{language: 'python'}, {language: 'mlir'}],
      initializationOptions: {target: settings.get('target'), arguments: settings.get('arguments')},
    },
  )
  await client.start()
}

function deactivate() {
  return client?.stop()
}

module.exports = {activate, deactivate}
