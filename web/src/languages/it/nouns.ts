/** Counted nouns. */
import { number, plural } from '$lib/i18n';

export const nChannels = (n: number): string => plural(n, '1 canale', `${number(n)} canali`);
export const nStreams = (n: number): string => plural(n, '1 flusso', `${number(n)} flussi`);
export const nGroups = (n: number): string => plural(n, '1 gruppo', `${number(n)} gruppi`);
export const nViewers = (n: number): string => plural(n, '1 spettatore', `${number(n)} spettatori`);
export const nUsers = (n: number): string => plural(n, '1 utente', `${number(n)} utenti`);
export const nTitles = (n: number): string => plural(n, '1 titolo', `${number(n)} titoli`);
export const nProgrammes = (n: number): string => plural(n, '1 programma', `${number(n)} programmi`);
export const nRecordings = (n: number): string => plural(n, '1 registrazione', `${number(n)} registrazioni`);
export const nLineups = (n: number): string => plural(n, '1 lista canali', `${number(n)} liste canali`);
export const nLogos = (n: number): string => plural(n, '1 logo', `${number(n)} loghi`);
