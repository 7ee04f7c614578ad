// sign_in.js -- signing in, and making an account from an invite.

import { call } from '../api.js';
import { h } from '../dom.js';
import { Field, Form, tooOften } from '../form.js';
import { begin, signIn } from '../session.js';
import { slugOf } from '../words.js';

const LEAST_PASSWORD = 8;

export function signInPage(context) {
	const fields = {
		email: new Field('Email', { type: 'email', autocomplete: 'username', first: true }),
		password: new Field('Password', { type: 'password',
			autocomplete: 'current-password' }),
	};
	const form = new Form(fields, 'Sign In',
		() => signIn(fields.email.value, fields.password.value), { words: (error) =>
			error.code === 'invalid_credentials' ? 'Email or password is wrong.'
				: tooOften(error) });

	context.show(h('section', { class: 'card narrow' }, context.heading('Sign in'), form.node,
		h('p', {}, h('a', { href: 'app/invite/accept' }, 'Accept an invite'))));
	fields.email.input.focus();
}

const INVITE_WORDS = {
	invite_not_found: 'This invite is not known here. Check the token, or ask for a new link.',
	invite_already_used: 'This invite was used already. Ask for a new link.',
	invite_expired: 'This invite has expired. Ask for a new link.',
	email_taken: 'There is an account with this email address already.',
	slug_taken: 'This slug is taken; choose another one.',
};

// Of a link, the token moves from the address into the field.
function takeToken(context) {
	const token = context.query.get('token') ?? '';

	if (token !== '')
		history.replaceState(null, '', location.pathname);
	return token;
}

function judge(fields) {
	if (new TextEncoder().encode(fields.password.value).length < LEAST_PASSWORD)
		fields.password.setError(`At least ${LEAST_PASSWORD} characters.`);
	if (fields.password.value !== fields.confirm.value)
		fields.confirm.setError('This is not the same password.');
	return !fields.password.bad && !fields.confirm.bad;
}

// The slug follows the name until somebody edits it.
export function follow(name, slug) {
	let edited = false;

	slug.input.addEventListener('input', () => {
		edited = slug.value !== '';
	});
	name.input.addEventListener('input', () => {
		if (edited)
			return;
		slug.value = slugOf(name.value);
		slug.setError('');
	});
}

export function invitePage(context) {
	const fields = {
		token: new Field('Invite token', { value: takeToken(context) }),
		email: new Field('Email', { type: 'email', autocomplete: 'username' }),
		displayName: new Field('Display name', { autocomplete: 'name' }),
		slug: new Field('Slug', { max: 64,
			help: 'Part of the addresses of your projects: letters, digits, - and _.' }),
		password: new Field('Password', { type: 'password', autocomplete: 'new-password',
			help: `At least ${LEAST_PASSWORD} characters.` }),
		confirm: new Field('Confirm password', { type: 'password',
			autocomplete: 'new-password' }),
	};
	const form = new Form(fields, 'Create Account', async () => {
		if (!judge(fields))
			return;
		begin(await call('POST', 'api/public/auth/invite/accept', 'session', { anyone: true,
			body: { token: fields.token.value.trim(), email: fields.email.value,
				displayName: fields.displayName.value, slug: fields.slug.value,
				password: fields.password.value } }));
	}, { words: (error) => INVITE_WORDS[error.code] ?? tooOften(error) });

	follow(fields.displayName, fields.slug);
	context.show(h('section', { class: 'card narrow' }, context.heading('Accept invite'),
		form.node, h('p', {}, h('a', { href: 'app/login' }, 'Sign in instead'))));
	(fields.token.value === '' ? fields.token : fields.email).input.focus();
}
