# Calls a server with the Ruby client that OpenAPI Generator generates from openapi.yaml.
require 'openapi_client'
require 'uri'

address = URI(ENV.fetch('CONTRACT_URL'))
OpenapiClient.configure do |config|
  config.server_index = nil # use scheme and host instead of the servers of the contract
  config.scheme = address.scheme
  config.host = "#{address.host}:#{address.port}"
  config.access_token = ENV.fetch('CONTRACT_TOKEN')
end
puts "called as #{OpenapiClient::AuthenticationApi.new.authenticate.organisation.name}"
