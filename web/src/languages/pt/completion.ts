import { number, plural } from '$lib/i18n';
import type { completionText } from '../../pages/common/completionText';
import type { Texts } from '../catalogue';

export const completion: Texts<typeof completionText> = {
	attribution: 'Este produto usa a API do TMDB, mas não é endossado nem certificado pelo TMDB.',
	start: 'Completar agora',
	stop: 'Parar',
	running: (done, of) => `A completar: ${number(done)} de ${number(of)}`,
	ended: (found, ambiguous, unknown) =>
		`Encontrados na última execução: ${number(found)}. Com vários resultados possíveis: ${number(ambiguous)}; sem resultado: ${number(unknown)}.`,
	joined: (n) =>
		plural(n, `${number(n)} título foi unido a outro.`, `${number(n)} títulos foram unidos a outros.`),
	failed: (n) => `Sem resposta útil: ${number(n)}.`,
	leftOut: (n) => `Ficam para a próxima execução: ${number(n)}.`,
	remove: 'Remover o que foi completado',
	removeTitle: 'Remover o que foi completado?',
	removeText:
		'Todos os filmes e séries recuperam os valores dos seus fornecedores. As suas alterações mantêm-se.',
	removed: (n) =>
		plural(
			n,
			`${number(n)} título recuperou os seus valores.`,
			`${number(n)} títulos recuperaram os seus valores.`,
		),
};
