// project_form.js -- making a project, and changing one.

import { call, get, post } from '../api.js';
import { freshId, h } from '../dom.js';
import { Field, Form, copyField } from '../form.js';
import { breadcrumb } from '../parts.js';
import { go } from '../router.js';
import { toast } from '../toast.js';
import { PROVIDERS, hostOf } from '../words.js';
import { follow } from './sign_in.js';

function words(error) {
	if (error.code === 'project_slug_taken')
		return 'You have a project with this slug already; choose another one.';
	if (error.code === 'project_repo_url_conflicts_with_webhook') {
		const names = (error.details?.providers ?? []).map((p) => PROVIDERS[p] ?? p);

		return `The webhooks for ${names.join(' and ')} do not fit this repository. ` +
			'Delete them first, or change their instance URL.';
	}
	return undefined;
}

function checkBox(label, help, checked = false) {
	const id = freshId('box');
	const input = h('input', { type: 'checkbox', id, checked, 'aria-describedby': `${id}-help` });

	return { input, node: h('div', { class: 'check' }, input, h('label', { for: id }, label),
		h('p', { class: 'help', id: `${id}-help` }, help)) };
}

function makeFields(project) {
	const fields = {
		name: new Field('Project name', { value: project?.name, max: 64 }),
		projectSlug: new Field('Project slug', { value: project?.projectSlug, max: 64,
			disabled: project !== undefined,
			help: project === undefined ? 'Part of its addresses: letters, digits, - and _.'
				: 'The slug stays, since webhooks and badges have it in their addresses.' }),
		repoUrl: new Field('Repository URL', { value: project?.repoUrl, inputmode: 'url' }),
		defaultBranch: new Field('Default branch',
			{ value: project?.defaultBranch ?? 'main' }),
		configPath: new Field('Config path', { value: project?.configPath ?? '.anvil.yml',
			help: 'Where the repository says what is to be done.' }),
		repoToken: new Field('Access token', { type: 'password', optional: true,
			autocomplete: 'new-password',
			help: project === undefined
				? 'For a private repository. It is sealed, and never shown again.'
				: 'Empty: the stored one is kept.' }),
	};
	const showHost = () => {
		const host = hostOf(fields.repoUrl.value);

		fields.repoUrl.setHelp(host === null ? 'For example https://github.com/owner/repository'
			: `Host: ${host}`);
	};

	fields.repoUrl.input.addEventListener('input', showHost);
	showHost();
	return fields;
}

export function newProjectPage(context) {
	const fields = makeFields();
	const form = new Form(fields, 'Create Project', async () => {
		const { value: token } = fields.repoToken;
		const { project } = await post('api/private/projects', 'project', {
			signal: context.signal,
			body: { projectSlug: fields.projectSlug.value, name: fields.name.value,
				repoUrl: fields.repoUrl.value, defaultBranch: fields.defaultBranch.value,
				configPath: fields.configPath.value,
				...token === '' ? {} : { repoToken: token } } });

		toast(`${project.name} was created.`);
		go('/app/projects');
	}, { words });

	follow(fields.name, fields.projectSlug);
	context.show(h('section', { class: 'card form-card' }, context.heading('New project'),
		form.node));
	fields.name.input.focus();
}

// Where the badge of a project is, and how a README shows it.
function badgeCard(project) {
	const { ownerSlug, projectSlug, id } = project;
	const at = (path) => new URL(path, document.baseURI).href;
	const picture = at(`badge/${ownerSlug}/${projectSlug}.svg`);

	return h('section', { class: 'card form-card' }, h('h2', {}, 'Status badge'),
		h('p', {}, h('img', { src: picture, alt: 'Status badge of this project' })),
		copyField('Address', picture),
		copyField('Markdown', `[![anvil](${picture})](${at(`app/projects/${id}`)})`));
}

// Only what differs.
function changes(fields, project, removeToken, badgePublic) {
	const body = {};

	for (const name of ['name', 'repoUrl', 'defaultBranch', 'configPath'])
		if (fields[name].value !== project[name])
			body[name] = fields[name].value;
	if (removeToken.checked)
		body.repoToken = null;
	else if (fields.repoToken.value !== '')
		body.repoToken = fields.repoToken.value;
	if (badgePublic.checked !== project.badgePublic)
		body.badgePublic = badgePublic.checked;
	return body;
}

export async function settingsPage(context) {
	const { id } = context.params;
	const path = `api/private/projects/${encodeURIComponent(id)}`;

	context.wait('Loading project…');
	const { project } = await get(path, 'projectDetail', { signal: context.signal });
	const fields = makeFields(project);
	const removeToken = checkBox('Remove the stored token',
		'Then only repositories that need no credential can be built.');
	const badgePublic = checkBox('Public status badge',
		'Everybody may see whether the newest run of the default branch passed.',
		project.badgePublic);
	const form = new Form(fields, 'Save Changes', async () => {
		const body = changes(fields, project, removeToken.input, badgePublic.input);

		if (Object.keys(body).length === 0) {
			toast('No changes to save.');
			return;
		}
		await call('PATCH', path, 'project', { body, signal: context.signal });
		toast('The project was updated.');
		go(`/app/projects/${id}`);
	}, { words, more: [removeToken.node, badgePublic.node] });

	context.show(breadcrumb([['Projects', 'app/projects'],
		[project.name, `app/projects/${id}`], ['Settings']]),
	h('section', { class: 'card form-card' }, context.heading('Update project'), form.node),
	project.badgePublic && badgeCard(project));
}
