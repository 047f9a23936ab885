import { number } from '$lib/i18n';
import type { text } from '../../pages/viewers/text';
import type { Texts } from '../catalogue';
import { nViewers } from './nouns';

export const viewers: Texts<typeof text> = {
	title: 'Widzowie',
	count: nViewers,
	selected: (n, of) => `${number(n)} z ${number(of)}`,
	stale: (seconds) => `nieaktualne, ${number(seconds)} s`,
	search: 'Szukaj użytkownika, urządzenia, adresu, kanału lub programu',
	kind: 'Co',
	anyKind: 'wszystko',
	kinds: { live: 'kanały na żywo', title: 'filmy i seriale', past: 'archiwum kanałów' },
	format: 'Format',
	any: 'dowolny',
	node: 'Węzeł',
	columns: {
		user: 'Użytkownik',
		device: 'Urządzenie',
		address: 'Adres',
		name: 'Ogląda',
		seconds: 'Od',
		rate: 'Przepływność',
		lost: 'Utracone',
		format: 'Format',
		node: 'Węzeł',
		stop: 'Rozłącz',
	},
	anonymous: 'bez logowania',
	from: (time) => `z ${time}`,
	watching: (time) => `przez ${time}`,
	formats: {
		mpegts: 'MPEG-TS',
		'hls-ts': 'HLS (MPEG-TS)',
		'hls-fmp4': 'HLS (fMP4)',
		'll-hls': 'HLS z małym opóźnieniem',
		fmp4: 'fMP4',
		udp: 'wyjście UDP',
		rtp: 'wyjście RTP',
	},
	file: 'plik',
	stop: (name) => `Rozłącz ${name}`,
	none: 'Nikt nie ogląda',
	noneText: 'Tu pojawiają się widzowie kanałów, filmów, seriali i archiwum, gdy oglądają.',
	noneOfUser: 'Ten użytkownik teraz niczego nie ogląda.',
	noMatch: 'Żaden widz nie pasuje',
	clear: 'Pokaż wszystkich widzów',
};
