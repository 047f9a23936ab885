import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Quellen für Plugins',
	back: 'Alle Plugins',
	about:
		'Eine Quelle führt Plugins mit Versionen und Prüfsummen auf. Jedes Archiv wird vor der Installation geprüft, und nichts davon läuft, bevor Sie es einschalten.',
	add: 'Quelle hinzufügen',
	url: 'Adresse',
	urlHint: 'Die ihres Manifests, etwa https://example.com/manifest.json.',
	key: 'Öffentlicher Schlüssel',
	keyHint:
		'Freiwillig: ein OpenPGP-Schlüssel, dem Sie vertrauen. Dann gelten nur damit unterschriebene Listen.',
	refresh: 'Aktualisieren',
	refreshOf: (name) => `${name} aktualisieren`,
	remove: 'Entfernen',
	removeOf: (name) => `${name} entfernen`,
	removeTitle: (name) => `Quelle „${name}“ entfernen?`,
	removeText: 'Daraus installierte Plugins bleiben.',
	verified: 'mit Ihrem Schlüssel unterschrieben',
	signature: {
		not_checked: 'Unterschrift nicht geprüft: kein Schlüssel',
		not_signed: 'nicht unterschrieben',
	},
	fetched: (at) => `Zuletzt abgerufen: ${at}`,
	plugins: 'Verfügbare Plugins',
	none: 'Keine Plugins',
	deprecated: 'veraltet',
	isInstalled: (version) => `installiert: ${version}`,
	install: 'Installieren',
	installOf: (name) => `${name} installieren`,
	update: 'Aktualisieren',
	updateOf: (name) => `Plugin ${name} aktualisieren`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `${name} ${version} ist installiert.`,
	unsignedTitle: (name) => `„${name}“ ohne geprüfte Unterschrift installieren?`,
	unsignedText:
		'Die Prüfsumme zeigt, dass das Archiv das ist, das die Quelle nennt. Ohne Unterschrift bürgt niemand für die Quelle selbst.',
	replaceTitle: 'Das installierte Plugin ersetzen?',
	replaceText: (reason) => `${reason}. Seine Einstellungen und Dateien bleiben.`,
	replace: 'Ersetzen',
};
