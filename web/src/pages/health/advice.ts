// Advice of the gateway, in which commands and lines of files stand between grave accents.

export interface AdvicePart {
	text: string;
	/** Whether it is to be typed as it is. */
	isCode: boolean;
}

export const adviceParts = (advice: string): AdvicePart[] =>
	advice
		.split('`')
		.map((text, index) => ({ text, isCode: index % 2 === 1 }))
		.filter((it) => it.text !== '');
