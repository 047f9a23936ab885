import type { repositoriesText } from '../../pages/plugins/repositoriesText';
import type { Texts } from '../catalogue';

export const pluginRepositories: Texts<typeof repositoriesText> = {
	title: 'Repozytoria wtyczek',
	back: 'Wszystkie wtyczki',
	about:
		'Repozytorium zawiera wtyczki z wersjami i sumami kontrolnymi. Każde archiwum jest sprawdzane przed instalacją i nic z niego nie działa, dopóki go nie włączysz.',
	add: 'Dodaj repozytorium',
	url: 'Adres',
	urlHint: 'Adres manifestu, na przykład https://example.com/manifest.json.',
	key: 'Klucz publiczny',
	keyHint: 'Opcjonalnie: zaufany klucz OpenPGP. Wtedy przyjmowane są tylko listy nim podpisane.',
	refresh: 'Odśwież',
	refreshOf: (name) => `Odśwież ${name}`,
	remove: 'Usuń',
	removeOf: (name) => `Usuń ${name}`,
	removeTitle: (name) => `Usunąć repozytorium „${name}”?`,
	removeText: 'Zainstalowane z niego wtyczki zostaną.',
	verified: 'podpisane Twoim kluczem',
	signature: {
		not_checked: 'podpis niesprawdzony: brak klucza',
		not_signed: 'bez podpisu',
	},
	fetched: (at) => `Ostatnio pobrano: ${at}`,
	plugins: 'Dostępne wtyczki',
	none: 'Brak wtyczek',
	deprecated: 'przestarzała',
	isInstalled: (version) => `zainstalowana: ${version}`,
	install: 'Zainstaluj',
	installOf: (name) => `Zainstaluj ${name}`,
	update: 'Zaktualizuj',
	updateOf: (name) => `Zaktualizuj ${name}`,
	by: (author, license, repository) => [author, license, repository].filter(Boolean).join(' · '),
	installed: (name, version) => `Zainstalowano ${name} ${version}.`,
	unsignedTitle: (name) => `Zainstalować „${name}” bez sprawdzonego podpisu?`,
	unsignedText:
		'Suma kontrolna pokazuje, że archiwum jest tym, które podaje repozytorium. Bez podpisu nikt nie ręczy za samo repozytorium.',
	replaceTitle: 'Zastąpić zainstalowaną wtyczkę?',
	replaceText: (reason) => `${reason}. Jej ustawienia i pliki zostaną.`,
	replace: 'Zastąp',
};
