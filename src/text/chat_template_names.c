/* Chat templates by the names that axolotl gives them: the short ones, in the text of axolotl 0.19
 * (Apache 2.0; tests/golden/make_template_rows.py compares them with its files). */
#include <string.h>

#include "text/chat_template_given.h"

static const char alpaca[] =
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' and loop.first "
    "%}{{ message['content'] }}{% elif message['role'] == 'user' %}{{ '### Instruction:\n"
    "' + message['content'] }}{% elif message['role'] == 'assistant' %}{{ '### Response:\n"
    "' + message['content'] + eos_token }}{% endif %}{% if not loop.last %}{{ '\n"
    "\n"
    "' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '\n"
    "\n"
    "### Response:\n"
    "' }}{% endif %}\n";

static const char chatml[] =
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}"
    "{% endif %}{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n"
    "' + message['content'] + '<|im_end|>' + '\n"
    "'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n"
    "' }}{% endif %}\n";

static const char deepseek_v2[] =
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}"
    "{% endif %}{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' "
    "%}{{ '<｜User｜>' + message['content'] }}{% elif message['role'] == 'assistant' %}{{ "
    "'<｜Assistant｜>' "
    "+ message['content'] + eos_token }}{% elif message['role'] == 'system' %}{{ "
    "message['content'] "
    "+ '\n"
    "\n"
    "' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif "
    "%}\n";

static const char exaone[] =
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}{{ "
    "'[|system|][|endofturn|]\n"
    "' }}{% endif %}{{ '[|' + message['role'] + '|]' + message['content'] }}{% if message['role'] "
    "== 'user' %}{{ '\n"
    "' }}{% else %}{{ '[|endofturn|]\n"
    "' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '[|assistant|]' }}{% endif "
    "%}\n";

static const char gemma[] =
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role "
    "not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == "
    "'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
    "user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') "
    "%}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{% if "
    "message['content'] is string %}{{ '<start_of_turn>' + role + '\n"
    "' + message['content'] | trim + '<end_of_turn>\n"
    "' }}{% else %}{{ '<start_of_turn>' + role + '\n"
    "' }}{% for item in message['content'] %}{% if 'text' in item %}{{ item['text'] | trim "
    "}}{% endif %}{% endfor %}{{ '<end_of_turn>\n"
    "' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n"
    "'}}{% endif %}\n";

static const char llama3[] =
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}"
    "{% endif %}{% set loop_messages = messages %}{% for message in loop_messages %}{% if "
    "message['content'] is string %}{% set message_text = message['content'] | trim %}{% "
    "else %}{% set message_text = message['content'] | selectattr('text', 'defined') | "
    "map(attribute='text') "
    "| join('') | trim %}{% endif %}{% set content = '<|start_header_id|>' + message['role'] "
    "+ '<|end_header_id|>\n"
    "\n"
    "'+ message_text + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token "
    "+ content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|start_header_id|>assistant<|end_header_id|>\n"
    "\n"
    "' }}{% endif %}\n";

static const char metharme[] =
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] "
    "%}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = "
    "messages %}{% set system_message = 'Enter RP mode. You shall reply to the user while "
    "staying in character. Your responses must be detailed, creative, immersive, and drive "
    "the scenario forward.' %}{% endif %}{{ '<|system|>' + system_message }}{% for message "
    "in loop_messages %}{% set content = message['content'] %}{% if message['role'] == 'user' "
    "%}{{ '<|user|>' + content.strip() }}{% elif message['role'] == 'assistant' %}{{ '<|model|>' "
    " + content.strip() }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|model|>' "
    "}}{% else %}{{ eos_token }}{% endif %}\n";

static const char mistral_v1[] =
    "{%- if messages[0]['role'] == 'system' %}\n"
    "    {%- if messages[0]['content'] is string %}\n"
    "        {%- set system_message = messages[0]['content'] %}\n"
    "    {%- else %}\n"
    "        {%- set system_message = messages[0]['content'] | selectattr('type', 'equalto', "
    "'text') | map(attribute='text') | join('') %}\n"
    "    {%- endif %}\n"
    "    {%- set loop_messages = messages[1:] %}\n"
    "{%- else %}\n"
    "    {%- set loop_messages = messages %}\n"
    "{%- endif %}\n"
    "\n"
    "{{- bos_token }}\n"
    "{%- for message in loop_messages %}\n"
    "    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\n"
    "        {{- raise_exception('After the optional system message, conversation roles must "
    "alternate user/assistant/user/assistant/...') }}\n"
    "    {%- endif %}\n"
    "    {%- if message['content'] is string %}\n"
    "        {%- set content = message['content'] %}\n"
    "    {%- else %}\n"
    "        {%- set content = message['content'] | selectattr('type', 'equalto', 'text') "
    "| map(attribute='text') | join('') %}\n"
    "    {%- endif %}\n"
    "    {%- if message['role'] == 'user' %}\n"
    "        {%- if loop.first and system_message is defined %}\n"
    "            {{- ' [INST] ' + system_message + '\\n\\n' + content + ' [/INST]' }}\n"
    "        {%- else %}\n"
    "            {{- ' [INST] ' + content + ' [/INST]' }}\n"
    "        {%- endif %}\n"
    "    {%- elif message['role'] == 'assistant' %}\n"
    "        {{- ' ' + content + eos_token }}\n"
    "    {%- else %}\n"
    "        {{- raise_exception('Only user and assistant roles are supported, with the exception "
    "of an initial optional system message!') }}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n";

static const char phi_3[] =
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'system') "
    "%}{{'<|system|>' "
    "+ '\n"
    "' + message['content'] + '<|end|>' + '\n"
    "'}}{% elif (message['role'] == 'user') %}{{'<|user|>' + '\n"
    "' + message['content'] + '<|end|>' + '\n"
    "' + '<|assistant|>' + '\n"
    "'}}{% elif message['role'] == 'assistant' %}{{message['content'] + '<|end|>' + '\n"
    "'}}{% endif %}{% endfor %}\n";

static const char phi_35[] =
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] "
    "%}{{'<|system|>\n"
    "' + message['content'] + '<|end|>\n"
    "'}}{% elif message['role'] == 'user' %}{{'<|user|>\n"
    "' + message['content'] + '<|end|>\n"
    "'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n"
    "' + message['content'] + '<|end|>\n"
    "'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n"
    "' }}{% endif %}\n";

static const struct {
    const char *name, *text;
} built_in[] = {{"alpaca", alpaca},     {"chatml", chatml},         {"deepseek_v2", deepseek_v2},
                {"exaone", exaone},     {"gemma", gemma},           {"llama3", llama3},
                {"metharme", metharme}, {"mistral_v1", mistral_v1}, {"phi_3", phi_3},
                {"phi_35", phi_35}};

/* Those of its names whose text is not here. */
static const char *const others[] = {"aya",
                                     "cohere",
                                     "command_a",
                                     "command_a_rag",
                                     "command_a_tool_use",
                                     "deepseek_v3",
                                     "exaone4",
                                     "falcon_h1",
                                     "gemma3",
                                     "gemma3n",
                                     "gemma4",
                                     "gemma4_unified",
                                     "jamba",
                                     "llama3_2_vision",
                                     "llama4",
                                     "llava",
                                     "mistral_v2v3",
                                     "mistral_v3_tekken",
                                     "mistral_v7_tekken",
                                     "nemotron_h",
                                     "phi_4",
                                     "pixtral",
                                     "qwen2_vl",
                                     "qwen3",
                                     "qwen3_5",
                                     "qwen_25"};

const char *text_chat_template_named(const char *name) {
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(name, built_in[i].name) == 0) return built_in[i].text;
    return NULL;
}

bool text_chat_template_foreign(const char *name) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0) return true;
    return false;
}

const char *text_chat_template_name_at(size_t index) {
    return index < sizeof built_in / sizeof *built_in ? built_in[index].name : NULL;
}
