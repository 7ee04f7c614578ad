// form.js -- fields with their labels, help and errors, and what sends them.

import { freshId, h } from './dom.js';

export class Field {
	#error;
	#help;

	// options: type, value, help, optional, autocomplete, disabled, max, first, inputmode.
	constructor(label, options = {}) {
		const id = freshId('field');

		this.#help = h('p', { class: 'help', id: `${id}-help` }, options.help ?? '');
		this.#error = h('p', { class: 'field-error', id: `${id}-error`, hidden: true });
		this.input = h('input', { id, type: options.type ?? 'text', value: options.value ?? '',
			autocomplete: options.autocomplete ?? 'off', disabled: options.disabled ?? false,
			maxlength: options.max, required: !options.optional, spellcheck: 'false',
			autocapitalize: 'none', inputmode: options.inputmode,
			readonly: options.readonly, 'data-first': options.first,
			'aria-describedby': `${id}-help ${id}-error` });
		this.input.addEventListener('input', () => this.setError(''));
		this.node = h('div', { class: 'field' },
			h('div', {}, h('label', { for: id }, label), options.optional &&
				h('span', { class: 'optional', 'aria-hidden': 'true' }, ' optional')),
			this.input, options.beside, this.#help, this.#error);
	}

	get value() {
		return this.input.value;
	}

	set value(text) {
		this.input.value = text;
	}

	setHelp(text) {
		this.#help.textContent = text;
	}

	setError(text) {
		this.#error.textContent = text;
		this.#error.hidden = text === '';
		if (text === '')
			this.input.removeAttribute('aria-invalid');
		else
			this.input.setAttribute('aria-invalid', 'true');
	}

	get bad() {
		return this.input.hasAttribute('aria-invalid');
	}
}

export class Form {
	#fields;
	#banner = h('div', { class: 'banner error', role: 'alert', hidden: true });
	#submit;
	#words;
	#busy = false;

	// fields: {name in the request: Field}.  submit(): sends; what it throws is shown.
	// options: words(error) -> text of the banner, or undefined; more: nodes before the button;
	// buttons: nodes beside it.
	constructor(fields, label, submit, options = {}) {
		this.#fields = fields;
		this.#words = options.words ?? (() => undefined);
		this.#submit = h('button', { type: 'submit', class: 'primary' }, label);
		this.node = h('form', { noValidate: true, class: 'form' }, this.#banner,
			Object.values(fields).map((f) => f.node), options.more ?? [],
			h('div', { class: 'buttons' }, options.buttons ?? [], this.#submit));
		this.node.addEventListener('submit', (event) => {
			event.preventDefault();
			this.#send(submit);
		});
	}

	async #send(submit) {
		if (this.#busy || !this.#check())
			return;
		this.#busy = this.#submit.disabled = true;
		this.#banner.hidden = true;
		try {
			await submit();
		} catch (error) {
			if (error?.name !== 'AbortError')
				this.show(error);
		} finally {
			this.#busy = this.#submit.disabled = false;
			this.#focusBad();
		}
	}

	#focusBad() {
		Object.values(this.#fields).find((f) => f.bad)?.input.focus();
	}

	#check() {
		for (const field of Object.values(this.#fields))
			if (!field.bad && !field.input.disabled && field.input.required &&
			    field.value === '')
				field.setError('Fill this in.');
		this.#focusBad();
		return !Object.values(this.#fields).some((f) => f.bad);
	}

	// Fields take the issues that are about them, the banner the rest.
	show(error) {
		const rest = [];

		for (const issue of error.issues ?? []) {
			const field = this.#fields[issue.path] ?? this.#fields[issue.path.split('.')[0]];
			const text = issue.message ?? `Expected: ${issue.expected}.`;

			if (field !== undefined)
				field.setError(text);
			else
				rest.push(text);
		}
		if ((error.issues ?? []).length === 0)
			rest.push(this.#words(error) ?? error.message);
		this.#banner.textContent = rest.join(' ');
		this.#banner.hidden = rest.length === 0;
	}
}

// Waiting time of a 429, in words.
export function tooOften(error) {
	if (error.code !== 'rate_limited')
		return undefined;
	return `Too many attempts. Try again in ${error.retryAfter ?? 60} seconds.`;
}

// A read-only text with a button that copies it.
export function copyField(label, text) {
	const field = new Field(label, { value: text, readonly: true, optional: false });
	const copy = h('button', { type: 'button', onclick: async () => {
		field.input.select();
		try {
			await navigator.clipboard.writeText(text);
		} catch {
			document.execCommand('copy');	// no clipboard without a secure origin
		}
		copy.textContent = 'Copied';
		setTimeout(() => {
			copy.textContent = 'Copy';
		}, 2000);
	} }, 'Copy');

	const row = h('div', { class: 'copy' });

	field.input.before(row);
	row.append(field.input, copy);
	return field.node;
}
