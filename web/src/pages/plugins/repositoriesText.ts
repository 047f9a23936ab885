import { texts } from '$lib/i18n';

export const repositoriesText = texts('pluginRepositories', {
	title: 'Repositories of plugins',
	back: 'All plugins',
	about:
		'A repository lists plugins with their versions and checksums. Each archive is checked before it is installed, and nothing of it runs until you enable it.',
	add: 'Add a repository',
	url: 'Address',
	urlHint: 'Of its manifest, such as https://example.com/manifest.json.',
	key: 'Public key',
	keyHint: 'Optional: an OpenPGP key that you trust. Then only lists that are signed with it are accepted.',
	refresh: 'Refresh',
	refreshOf: (name: string) => `Refresh ${name}`,
	remove: 'Remove',
	removeOf: (name: string) => `Remove ${name}`,
	removeTitle: (name: string) => `Remove the repository “${name}”?`,
	removeText: 'Plugins that were installed from it stay.',
	verified: 'signed with your key',
	signature: {
		not_checked: 'signature not checked: no key',
		not_signed: 'not signed',
	} as Record<string, string>,
	fetched: (at: string) => `Last fetched ${at}`,
	plugins: 'Available plugins',
	none: 'No plugins',
	deprecated: 'deprecated',
	isInstalled: (version: string) => `installed: ${version}`,
	install: 'Install',
	installOf: (name: string) => `Install ${name}`,
	update: 'Update',
	updateOf: (name: string) => `Update ${name}`,
	by: (author: string, license: string, repository: string) =>
		[author, license, repository].filter(Boolean).join(' · '),
	installed: (name: string, version: string) => `${name} ${version} is installed.`,
	unsignedTitle: (name: string) => `Install “${name}” without a checked signature?`,
	unsignedText:
		'The checksum shows that the archive is the one that the repository states. Without a signature, nobody vouches for the repository itself.',
	replaceTitle: 'Replace the installed plugin?',
	replaceText: (reason: string) => `${reason}. Its settings and files stay.`,
	replace: 'Replace',
});
